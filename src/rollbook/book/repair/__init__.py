"""What is wrong with a run folder, and saving what can be saved of it."""
