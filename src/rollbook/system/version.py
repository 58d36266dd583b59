"""The version of rollbook, defined only here."""

__version__ = "0.1.0"
