"""Where a run came from: its configuration, command line, code, packages and machine."""
