"""AG-UI, the protocol between agents and pages, such as those of CopilotKit."""
