"""Curves of runs and of groups, and the numbers that compare groups."""
