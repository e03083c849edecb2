"""Files for Python programs: what an agent's tools do, as plain calls, and as tools for agents of frameworks."""
