"""What language servers find in changes, and the tools of a solution."""
