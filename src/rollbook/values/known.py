"""Kinds of values other than numbers and texts, by name. A new kind is a class and one line here.

A kind is a small class. Its `__slots__` are plain data, and its constructor takes them by name. Its entry defines how
it is logged (`run.log({"x": Sound("a.wav", 3.0)})` writes a row of its table), read back, passed to sinks that accept
its class, stored in the state of filters and written by `jsonl`.
"""

from __future__ import annotations

from rollbook.values.kinds import Histogram, Image, Video

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Kind:
    """One kind of value.

    Attributes:
      type: its class.
      columns: its fields as columns of its table: name -> "text", "number", "integer", "boolean" or "numbers".
      table: the table of its rows; by default a separate table with the name of the kind.
      says: additional cells of each of its rows, to distinguish kinds in one table.
    """

    __slots__ = ("columns", "fixed", "table", "type")

    def __init__(
        self,
        type: type,
        columns: Mapping[str, str],
        *,
        table: str = "",
        fixed: Mapping[str, str] | None = None,
    ) -> None:
        self.type, self.columns, self.table, self.fixed = type, dict(columns), table, dict(fixed or {})

    def fields(self, value: object) -> dict[str, object]:
        """The fields of a value as plain data."""
        cells = {name: getattr(value, name) for name in self.columns}
        return {name: list(cell) if isinstance(cell, tuple) else cell for name, cell in cells.items()}

    def cells(self, key: str, value: object) -> dict[str, object]:
        """The row of its table for a value."""
        return {"key": key, **self.fixed, **self.fields(value)}

    def value(self, fields: Mapping[str, object]) -> Any:
        """The value with these fields; unknown fields are ignored.

        Raises:
          KeyError, TypeError, ValueError: the fields do not form a value.
        """
        return self.type(**{name: fields[name] for name in self.columns})


_NUMBERS = {"low": "number", "high": "number", "total": "number", "total_squares": "number"}


class Kinds(dict[str, Kind]):
    """The kinds by their names in JSON."""

    def of(self, value: object) -> tuple[str, Kind] | None:
        """(name, kind) of a value, None for numbers, texts and everything else."""
        made = type(value)
        for word, kind in self.items():
            if made is kind.type:
                return word, kind
        return None

    def as_json(self, value: object, cell: Callable[[Any], object]) -> dict[str, object] | None:
        """{"kind": its name, field: …} of a value of one of the kinds, None for everything else.

        Args:
          value: of any type.
          cell: converts each number or text in a field to JSON data.
        """
        word_and_kind = self.of(value)
        if word_and_kind is None:
            return None
        word, kind = word_and_kind
        data: dict[str, object] = {"kind": word}
        for name, content in kind.fields(value).items():
            data[name] = [cell(each) for each in content] if isinstance(content, list) else cell(content)
        return data


KINDS = Kinds(
    {
        "histogram": Kind(Histogram, {"edges": "numbers", "counts": "numbers", **_NUMBERS}, table="histograms"),
        "image": Kind(
            Image, {"path": "text", "width": "integer", "height": "integer"}, table="media", fixed={"kind": "image"}
        ),
        "video": Kind(
            Video,
            {"path": "text", "width": "integer", "height": "integer", "frames": "integer", "fps": "number"},
            table="media",
            fixed={"kind": "video"},
        ),
    }
)
"""All kinds."""

for _word, _kind in KINDS.items():
    _kind.table = _kind.table or _word
