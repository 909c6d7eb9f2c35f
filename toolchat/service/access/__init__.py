"""Access control: keys, tokens, principals, quotas, and allowed host names."""
