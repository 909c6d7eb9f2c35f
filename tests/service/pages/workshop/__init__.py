"""Tool folders for tests and pictures of the page: every kind of argument, consent, progress, and a missing secret."""
