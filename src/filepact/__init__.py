"""Public names of filepact."""
