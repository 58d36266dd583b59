"""Checkpoints: saved atomically with their exact position in the run, and restored."""
