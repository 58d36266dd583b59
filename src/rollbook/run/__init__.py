"""The writing end of a run: opening it, `Run` and `Scope`, going back, ending it."""
