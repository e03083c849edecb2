"""Frameworks for agents, and pytest, with files that are guarded, recorded and undoable: a module each."""
