"""Memory: keep rows in a list, for tests and notebooks."""

from __future__ import annotations

from rollbook.values.known import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollbook.protocols import Row, RunInfo


class Memory:
    """Keeps every row, marks included, in `rows`. It exists only in this process and writes no file.

    Attributes:
      rows: what was written, in order.
      run: the run it was opened for, None before.
      is_open: whether it has been opened and not been closed.
    """

    accepts: frozenset[type] = frozenset({float, int, bool, str, *(kind.type for kind in KINDS.values())})

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.run: RunInfo | None = None
        self.is_open = False

    def open(self, run: RunInfo) -> None:
        """Store the run. Rows of an earlier attempt stay."""
        self.run, self.is_open = run, True

    def write(self, rows: Sequence[Row]) -> None:
        """Keep these rows."""
        self.rows.extend(rows)

    def close(self) -> None:
        """Rows stay readable."""
        self.is_open = False

    def values(self, key: str) -> list[object]:
        """All values of one key, in order; rows without it are left out.

        Args:
          key: its full name.
        """
        return [row.values[key] for row in self.rows if key in row.values]
