"""The command line beside ``serve``: questions, conversations, tools by hand, checks and evaluations on a terminal."""
