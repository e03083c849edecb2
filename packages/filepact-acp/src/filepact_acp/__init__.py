"""The Agent Client Protocol: files for agents that ask their client for them."""
