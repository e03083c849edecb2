"""A conformance suite for clients: a scripted agent that looks at how its requests are answered."""
