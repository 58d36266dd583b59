"""The operating system and this process: files, liveness, threads, optional packages, and whose exception it is."""
