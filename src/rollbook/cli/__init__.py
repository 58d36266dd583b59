"""The command line: each command parses, calls one library function, and prints."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Entry point of the program `rollbook`. With rollbook-core alone it says what is missing; status 1."""
    _prepare_output()
    try:
        from rollbook.cli.app import app
    except ImportError as err:
        import sys

        from rollbook.system.optional import core_alone
        from rollbook.system.version import __version__

        missing = core_alone(f"the command line of rollbook {__version__}", err)
        if missing is None:
            raise
        sys.exit(f"Error: {missing}")

    app(prog_name="rollbook")


def _prepare_output() -> None:
    """Make stdout and stderr take every text: what their encoding lacks is escaped, a closed one swallows it."""
    import os
    import sys

    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 it stays open
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
