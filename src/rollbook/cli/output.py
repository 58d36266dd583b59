"""Printing results: a table for readers, JSON or CSV for programs. Results go to stdout, remarks to stderr."""

from __future__ import annotations

import csv
import math
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import click

from rollbook.system.short_names import short_names
from rollbook.system.texts import csv_cell, json_text, number_text, setting_text
from rollbook.system.texts import printable as clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import pyarrow

__all__ = [
    "ago",
    "clean",
    "cut_apart",
    "for_errors",
    "in_lines",
    "in_microseconds",
    "json_option",
    "number",
    "print_arrow",
    "print_choices",
    "print_finding",
    "print_json",
    "print_patch",
    "print_rows",
    "print_sentence",
    "print_wrapped",
    "remark",
    "seconds",
]


def number(value: object) -> str:
    """A cell for readers: six significant digits, missing as "-"."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
            return f"{int(value):,}"
        return number_text(value)
    if isinstance(value, int):
        return f"{value:,}"
    return clean(value)


def cell(column: str, value: object) -> str:
    """A cell of a table: as in `number`, but settings and identifiers have no thousands separators."""
    if column.startswith("config.") and value is not None:
        return setting_text(value)
    if isinstance(value, int) and column.endswith(("seed", "_id", "pid")):
        return str(value)
    return number(value)


_HOURS_OF_DAYS, _DAYS_OF_A_YEAR = 72, 365
"""From this many hours on, a duration is in days; from this many days on, in years."""


def seconds(duration: float | None) -> str:
    """A duration: 3.2 s, 4 m 05 s, 2 h 07 m, 5 d 03 h, 2.4 years."""
    if duration is None:
        return "-"
    if duration < 60:
        return f"{duration:.1f} s"
    minutes, rest = divmod(int(duration), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < _HOURS_OF_DAYS:
        return f"{hours} h {minutes:02d} m"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours:02d} h" if days < _DAYS_OF_A_YEAR else f"{days / _DAYS_OF_A_YEAR:.1f} years"


def ago(moment: float | None) -> str:
    """How long ago a unix time was."""
    return "-" if not moment else f"{seconds(max(0.0, time.time() - moment))} ago"


def remark(text: str) -> None:
    """A remark to the user, separate from the result; in a terminal its lines end between words."""
    click.echo(for_errors(text), err=True)


def print_finding(row: Mapping[str, object], when: str = "") -> None:
    """What a health rule found: level, run (the id that `rollbook show` takes) and rule; the message below."""
    run = f"{row['project']}/{row['name']}"
    click.echo(clean("  ".join(filter(None, (f"{row['level']:<4}", str(row["run"]), run, str(row["rule"]), when)))))
    print_wrapped(clean(row["message"]), initial_indent="    ", subsequent_indent="    ")


def print_wrapped(words: str, initial_indent: str = "", subsequent_indent: str = "") -> None:
    """A long sentence in lines of the terminal's width."""
    width = max(20, shutil.get_terminal_size((120, 24)).columns)
    click.echo(textwrap.fill(words, width, initial_indent=initial_indent, subsequent_indent=subsequent_indent))


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option of a command whose answer `rollbook shapes` describes."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def print_json(value: object) -> None:
    """Print an answer for programs: strict JSON, see `json_text`."""
    click.echo(json_text(value, indent=1))


def print_rows(
    rows: Sequence[Mapping[str, object]],
    *,
    as_json: bool = False,
    as_csv: bool = False,
    columns: Iterable[str] | None = None,
) -> None:
    """Print rows as a table; the columns are in order of first appearance."""
    names = list(columns) if columns is not None else list(dict.fromkeys(name for row in rows for name in row))
    if as_json:
        print_json([{name: row.get(name) for name in names} for row in rows])
        return
    if as_csv:
        writer = csv.writer(sys.stdout)
        writer.writerow([csv_cell(name) for name in names])
        writer.writerows([[_csv_cell(row.get(name)) for name in names] for row in rows])
        return
    if not rows:
        remark("nothing to list")
        return
    cells = [[cell(name, row.get(name)) for name in names] for row in rows]
    cells = [list(line) for line in zip(*(cut_apart(column, 60) for column in zip(*cells, strict=True)), strict=True)]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(names)]
    right = [all(isinstance(row.get(name), (int, float, type(None))) for row in rows) for name in names]

    def line(parts: Sequence[str]) -> str:
        padded = [p.rjust(w) if r else p.ljust(w) for p, w, r in zip(parts, widths, right, strict=True)]
        return "  ".join(padded).rstrip()

    click.echo(click.style(line([clean(name) for name in names]), bold=True))
    for parts in cells:
        click.echo(line(parts))


def cut_apart(texts: Sequence[str], width: int) -> list[str]:
    """The texts in at most this many characters, cut at their end, or further in front if that keeps them apart; else
    by what they do not share.
    """
    if max(map(len, texts)) <= width:
        return list(texts)
    for head in (width - 1, width * 2 // 3, width // 2, width // 3, 0):
        tail = max(0, width - 1 - head)
        cut = [text if len(text) <= width else f"{text[:head]}…{text[len(text) - tail :]}" for text in texts]
        if len(set(cut)) == len(set(texts)):
            return cut
    return short_names(texts, width)


def _csv_cell(value: object) -> object:
    if isinstance(value, str):
        return csv_cell(value)
    return "" if value is None else json_text(value) if isinstance(value, (dict, list)) else value


def print_choices(what: str, choices: Mapping[str, str], *, as_json: bool = False, as_csv: bool = False) -> None:
    """Print what can be chosen: each name with its sentence; as JSON a list of {what, "about"}."""
    if as_json or as_csv:
        rows = [{what: name, "about": about} for name, about in choices.items()]
        print_rows(rows, as_json=as_json, as_csv=as_csv)
        return
    width = max(map(len, choices), default=0)
    for name, about in choices.items():
        line = f"{name:<{width}}  {about}"
        if sys.stdout.isatty():
            print_wrapped(line, subsequent_indent=" " * (width + 2))
        else:
            click.echo(line)


def print_arrow(table: pyarrow.Table, *, as_json: bool = False, as_csv: bool = False, limit: int | None = None) -> None:
    """Print an Arrow table; the number of rows left out by `limit` goes to stderr."""
    total = table.num_rows
    if limit is not None:
        table = table.slice(0, limit)
    table = in_microseconds(table)
    print_rows(table.to_pylist(), as_json=as_json, as_csv=as_csv, columns=table.column_names)
    if total > table.num_rows:
        remark(f"… {total - table.num_rows:,} more rows; --limit shows them")


def in_microseconds(table: pyarrow.Table) -> pyarrow.Table:
    """Reduce nanoseconds, which Python's times do not have; without pandas those columns could not be printed."""
    import pyarrow as pa

    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            cells = table.column(index).cast(pa.timestamp("us", tz=field.type.tz), safe=False)
            table = table.set_column(index, field.name, cells)
    return table


_LAST_COMMAND = re.compile(r"(.*:)\s+((?:rollbook|pip install) [^:]+?)\.?")


def in_lines(text: str, width: int) -> list[str]:
    """A sentence on lines of at most this width, the later ones indented.

    A command at its end has a line of its own, however long, so that it can be copied as it is.
    """
    sentence, command = found.groups() if (found := _LAST_COMMAND.fullmatch(text)) else (text, "")
    lines = textwrap.wrap(sentence, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    if not command:
        return lines
    if len(lines[-1]) + 1 + len(command) <= width:
        return [*lines[:-1], f"{lines[-1]} {command}"]
    return [*lines, f"  {command}"]


def print_sentence(text: str, width: int) -> None:
    """A sentence on lines of at most this width, the later ones indented; see `in_lines`."""
    for line in in_lines(clean(text), width):
        click.echo(line)


def for_errors(text: str, before: str = "") -> str:
    """A text as the error output shows it: in a terminal in lines that end between words, else as it is.

    Args:
      before: what will stand in front of the first line.
    """
    try:
        width = max(20, os.get_terminal_size(sys.stderr.fileno()).columns)
    except (AttributeError, OSError, ValueError):  # no terminal
        return text
    first, *more = text.split("\n")
    lines = [*in_lines(before + first, width), *(part for line in more for part in in_lines(line, width) or [""])]
    return "\n".join(lines)[len(before) :]


def print_patch(text: str, nothing: str) -> None:
    """Print a patch in colours; a remark if there is none."""
    if not text:
        remark(nothing)
    for line in text.splitlines():
        bare = clean(line.replace("\t", "    "))
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        click.echo(click.style(bare, fg=colour) if colour else bare)
