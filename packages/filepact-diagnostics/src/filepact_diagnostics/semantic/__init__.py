"""Diagnostics of language servers for the files of a workspace, and for changes to them."""
