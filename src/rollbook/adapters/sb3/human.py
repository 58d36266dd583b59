"""The readable table, on standard output or in log.txt."""

from __future__ import annotations

import sys

from rollbook.adapters.sb3._host import RICH, KVWriter, SeqWriter, excluded_from, unsupported
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class HumanOutputFormat(KVWriter, SeqWriter):
    """Rows as tables of sorted keys, grouped by the part before their first slash; texts as lines.

    Arguments as in `stable_baselines3.common.logger.HumanOutputFormat`.

    Args:
      filename_or_file: path of a file to append to, or an object with `write`.
      max_length: longer keys and values are shortened; keys that would become equal stay different.
      compat: as in Stable-Baselines3: FormatUnsupportedError for images and the like, ValueError for two keys that are
        equal when shortened.

    Exclusions: "stdout" applies to standard output and "log" to files; other objects follow both.
    Images, videos, figures and hyper-parameters are left out.
    Raises (constructor):
      ValueError: neither a path nor an object with `write`.
    """

    def __init__(self, filename_or_file: Any, max_length: int = 36, *, compat: bool = False) -> None:
        self.max_length, self.compat = max_length, compat
        self.own_file = isinstance(filename_or_file, str)
        if self.own_file:
            self.file: Any = open(filename_or_file, "a", encoding="utf-8")  # noqa: SIM115  # until close()
        elif callable(getattr(filename_or_file, "write", None)):
            self.file = filename_or_file
        else:
            raise ValueError(f"Expected file or str, got {filename_or_file!r}: pass a path or something with write()")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of this output in exclusions."""
        if self.own_file:
            return ("log",)
        return ("stdout",) if self.file in (sys.stdout, sys.stderr) else ("stdout", "log")

    def write(self, key_values: Mapping[str, object], key_excluded: Mapping[str, object], step: int = 0) -> None:
        """Write one table; nothing if it would be empty."""
        names, shown = self.names, {}
        for key, value in sorted(key_values.items(), key=lambda item: str(item[0])):
            if excluded_from(key_excluded.get(key), *names):
                continue
            if not isinstance(value, RICH):
                shown[str(key)] = _text(value)
            elif self.compat:
                raise unsupported(("stdout", "log"), value)
        lines = self._table(shown)
        if lines:
            self._put("\n".join(lines) + "\n")

    def write_sequence(self, sequence: list[str]) -> None:
        """Write one line."""
        self._put(" ".join(map(str, sequence)) + "\n")

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self.own_file:
            self.file.close()

    def _table(self, cells: dict[str, str]) -> list[str]:
        rows: list[tuple[str, str]] = []
        tag = ""
        taken: set[str] = set()
        for key, text in cells.items():
            head, slash, rest = key.partition("/")
            if slash and head:
                if head != tag:
                    tag, taken = head, set()
                    rows.append((self._shortened(f"{head}/", set()), ""))
                name = f"   {rest}"
            else:
                tag, name = "", key
            if self.compat and (short := self._shortened(name, set())) in taken:
                raise ValueError(f"Key {key!r} truncated to {short!r}, which is there already: raise max_length")
            name = self._shortened(name, taken)
            taken.add(name)
            rows.append((name, self._shortened(text, set())))
        if not rows:
            return []
        key_width = max(len(name) for name, _ in rows)
        value_width = max(len(text) for _, text in rows)
        rule = "-" * (key_width + value_width + 7)
        return [rule, *(f"| {name:<{key_width}} | {text:<{value_width}} |" for name, text in rows), rule]

    def _shortened(self, text: str, taken: set[str]) -> str:
        """`text`, or its beginning. If that is taken, as much of its end is kept as makes it unique."""
        if len(text) <= self.max_length:
            return text
        short = text[: self.max_length - 3] + "..."
        from_end = 0
        while short in taken and from_end < self.max_length - 4:
            from_end += 1
            short = text[: self.max_length - 3 - from_end] + "..." + text[-from_end:]
        return short

    def _put(self, text: str) -> None:
        tqdm = sys.modules.get("tqdm")
        if tqdm is not None and self.file is sys.stdout:  # around a progress bar, not through it
            tqdm.tqdm.write(text, file=sys.stdout, end="")
        else:
            self.file.write(text)
        flush = getattr(self.file, "flush", None)
        if flush is not None:
            flush()


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    number = scalar_of(value)
    if isinstance(number, float):
        return f"{number:<8.3g}"
    return str(value if number is None else number)
