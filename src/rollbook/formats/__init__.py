"""What other tools wrote, and back: importers of their runs, data sets of trajectories."""
