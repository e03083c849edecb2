"""Windows in which a person decides about what waits: on the whole screen, line by line, in a browser, in their chat."""
