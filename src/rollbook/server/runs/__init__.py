"""The table of runs, one run, and what the page stores."""
