"""What the tables of a run hold: episodes, samples, rollouts, timings, logs, files, alerts; and all near a point."""
