"""The one place that says which rollbook this is."""

__version__ = "0.1.0"
