"""The parts put together: what was read from the environment, how it is wired, and what is open while it runs."""
