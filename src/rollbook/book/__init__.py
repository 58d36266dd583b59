"""The reading end of one run."""
