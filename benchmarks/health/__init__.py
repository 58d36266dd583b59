"""Trainings with known faults, and what the health rules say of each: `python -m benchmarks.health --help`."""
