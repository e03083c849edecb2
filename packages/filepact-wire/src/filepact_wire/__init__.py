"""JSON-RPC: messages, framing, pending requests, pipes and URIs, for all protocols."""
