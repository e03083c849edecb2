"""Language servers for C#, the reading of its project files, and the search for its compiler."""
