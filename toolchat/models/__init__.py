"""Chat models: one folder for each provider, and what they are to the rest."""
