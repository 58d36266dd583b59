"""The writing end of a run: opening, `Run` and `Scope`, restore and rewind, ending."""
