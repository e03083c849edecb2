"""The supervisor of language servers and agents, and the sandbox in which it starts a server."""
