"""One row of a table as a mapping: an episode, a rollout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from rollbook.values.arrow import plain_rows


class OneRow(Mapping[str, Any]):
    """Column -> value, None if the row lacks it.

    Args:
      table: of one row. key: the column of its id.
    Attributes:
      id: its id.
      row: the row as a dict.
    """

    def __init__(self, table: pa.Table, key: str) -> None:
        (self.row,) = plain_rows(table)
        self.id = str(self.row[key])

    def __getitem__(self, column: str) -> Any:
        return self.row[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self.row)

    def __len__(self) -> int:
        return len(self.row)
