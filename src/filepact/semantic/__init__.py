"""What language servers make of files and of changes to them: workspace and servers together."""
