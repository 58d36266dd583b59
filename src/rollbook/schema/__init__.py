"""What a run folder says: its tables, clocks, keys and their canonical names, run.json, file names and status."""
