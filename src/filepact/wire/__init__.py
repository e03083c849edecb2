"""What passes between a language server and its client, whichever end one is: bytes and names."""
