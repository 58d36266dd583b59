"""Runs and places: shipping a folder to a store, bringing it back, and keeping the two alike."""
