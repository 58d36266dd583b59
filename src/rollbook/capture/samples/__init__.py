"""Samples: one row per item of a batch, and at once whether each item is new."""
