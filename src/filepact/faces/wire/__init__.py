"""Messages of JSON-RPC, one a line, over two pipes; what every protocol here shares."""
