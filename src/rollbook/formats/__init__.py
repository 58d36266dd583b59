"""Exchange with other tools: importers of their runs, exporters, and data sets of trajectories."""
