"""Who may ask, and how much: keys, tokens, quotas, and the names by which the service may be called."""
