"""The command line: each command parses, calls one library function, and prints."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Entry point of the program `rollbook`."""
    from rollbook.cli.app import app

    app(prog_name="rollbook")
