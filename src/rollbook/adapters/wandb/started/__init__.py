"""The folder that `rollbook run` adds to the PYTHONPATH of the program."""
