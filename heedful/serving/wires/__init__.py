"""The wire formats of others, each at its own paths, over the same service as our own."""
