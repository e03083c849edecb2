"""C#: its solutions and projects, and programs of our own that check its sources."""
