"""What the child that seals does: `python -m rollbook.keeper.sealing_child RUN [--final]`.

It seals; with --final it also writes into run.json what the run came to (book.results). It has pyarrow loaded anyway,
which the keeper never does.
"""

from __future__ import annotations

import sys

from rollbook.errors import RollbookError
from rollbook.storage import main as seal

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Seal a run; 0 if that was done. What the run came to can be worked out later, so failing there is only said."""
    code = seal(arguments)
    if code == 0 and "--final" in arguments:
        folder = next(word for word in arguments if not word.startswith("--"))
        from rollbook.book import Book, write_results

        try:
            write_results(Book(folder))
        except (RollbookError, OSError) as err:
            sys.stderr.write(f"rollbook: what the run came to is not in run.json yet: {err}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
