"""A real agent that learns a real environment while rollbook records it: `rollbook demo`."""
