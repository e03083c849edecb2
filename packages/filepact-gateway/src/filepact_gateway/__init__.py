"""The gateway: MCP over HTTP for many clients, with limits, sessions that any worker knows, and drain."""
