"""What happens around one question: the client, its advisors, the memory."""
