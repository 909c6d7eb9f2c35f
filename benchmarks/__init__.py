"""What a question costs: this service beside agent frameworks and beside the limit, in one run."""
