"""Tools: what a model is told of them, and how their calls are run."""
