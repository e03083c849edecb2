"""Shared workspaces on object storage: one manifest that is exchanged on a condition, and packs with what files hold.

Nothing here knows a disk.  Only the composition root knows this floor, as it does the journal's.
"""
