"""Agents and editors connected to filepact, in their own settings files; and a tour of what that gives."""
