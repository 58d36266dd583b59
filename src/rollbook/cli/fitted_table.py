"""A table that fits the terminal: the most important columns first; the others are named below it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence

import click

from rollbook.cli.output import cell, clean, cut_apart, print_sentence, remark

_WIDEST = 40
_LEAST_OF_WIDE = 24


_NARROWEST = 20
"""Columns of a terminal, at least: nothing can be laid out in fewer."""


def terminal_width() -> int | None:
    """The columns of the terminal; None if the output goes to a file or another program."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return max(_NARROWEST, shutil.get_terminal_size((120, 24)).columns)
    return None


def has_colours() -> bool:
    """Whether the output is a terminal with colours and Unicode, and colours are not disabled."""
    encoding = (sys.stdout.encoding or "ascii").lower()
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM", "") == "dumb"
    return sys.stdout.isatty() and encoding.startswith("utf") and not plain


def print_fitted(
    rows: Sequence[Mapping[str, object]],
    names: Sequence[str],
    *,
    wide: str = "",
    width: int | None = None,
    hint: str = "--json and --csv show all columns",
    settings: Collection[str] = (),
) -> None:
    """Print the columns `names` of some rows, as many as fit, and name those that do not fit.

    Args:
      wide: a column of long texts: it comes last and gets the remaining width.
      width: in characters; None for no limit.
      hint: how to show the columns that do not fit.
      settings: the columns with values of settings, in addition to those called config.….
    """
    if not rows:
        remark("nothing to list")
        return
    called = {name: f"config.{name}" if name in settings else name for name in names}
    cells = {name: [cell(called[name], row.get(name)) for row in rows] for name in names}
    widths = _widths(cells, wide, width)
    shown = list(widths)
    fitting = {name: cut_apart(cells[name], widths[name]) for name in shown}
    right = {name: all(isinstance(row.get(name), (int, float, type(None))) for row in rows) for name in shown}

    def line(parts: Mapping[str, str]) -> str:
        texts = [parts[name] for name in shown]
        aligned = [t.rjust(widths[n]) if right[n] else t.ljust(widths[n]) for t, n in zip(texts, shown, strict=True)]
        return "  ".join(aligned).rstrip()

    click.echo(click.style(line({name: _cut(clean(name), widths[name]) for name in shown}), bold=True))
    for index in range(len(rows)):
        click.echo(line({name: fitting[name][index] for name in shown}))
    hidden = [name for name in names if name not in shown]
    if hidden:
        remark(f"not shown: {clean(', '.join(hidden))} ({hint})")


def _widths(cells: Mapping[str, Sequence[str]], wide: str, width: int | None) -> dict[str, int]:
    """The columns that fit, in the order in which they are shown, each with its width in characters."""
    longest = {name: max(len(clean(name)), *map(len, texts)) for name, texts in cells.items()}
    plain = [name for name in cells if name != wide]
    if width is None:
        return {name: longest[name] for name in (*plain, *(name for name in cells if name == wide))}
    room, needed = width, 0
    if wide in cells:
        needed = min(longest[wide], max(_LEAST_OF_WIDE, width // 3))
        room -= needed + 2
    shown: dict[str, int] = {}
    for name in plain:
        narrow = min(_WIDEST, longest[name])
        if not shown or narrow + 2 <= room:
            shown[name] = narrow
            room -= narrow + 2
    if wide in cells:
        shown[wide] = min(longest[wide], needed + max(0, room))
        return shown
    for name in shown:  # the remaining room is for columns that were cut
        more = min(max(0, room), longest[name] - shown[name])
        shown[name] += more
        room -= more
    return shown


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def print_answer(
    sentences: Sequence[str],
    *tables: Sequence[Mapping[str, object]],
    limit: int | None = None,
    total: int | None = None,
    names: Sequence[str] | None = None,
) -> None:
    """The answer of a question for readers: its sentences, then its tables.

    Args:
      limit: the most rows of a table that are printed.
      total: how many rows there are, where a table was cut before.
      names: of the columns; None: those of the first row.
    """
    width = terminal_width() or 80
    for sentence in sentences:
        print_sentence(sentence, width)
    for number, rows in enumerate(filter(len, tables)):
        if sentences or number:
            click.echo()
        print_fitted(rows[:limit], list(names or rows[0]), width=width)
        more = (len(rows) if total is None else total) - (limit or len(rows))
        if more > 0:
            remark(f"… {more:,} more rows; --limit shows them")
