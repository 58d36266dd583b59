"""What `rollbook run` puts on the PYTHONPATH of the program that it starts."""
