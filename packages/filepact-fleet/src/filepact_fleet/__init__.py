"""Many machines: the journal in a PostgreSQL database, and shared workspaces on object storage."""

STORES = ("postgresql://", "postgres://")
"""What the address of a journal begins with."""
