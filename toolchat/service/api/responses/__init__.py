"""Answers to questions, in every response format."""
