"""The example application: the documents' tools, served by toolchat."""
