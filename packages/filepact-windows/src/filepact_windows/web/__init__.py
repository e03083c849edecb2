"""The review as a page in a person's own browser."""
