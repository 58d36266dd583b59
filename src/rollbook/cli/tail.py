"""`rollbook tail`."""

from __future__ import annotations

import re
from collections.abc import Mapping

import click

from rollbook.cli.find import dir_option, find_book, run_argument_or_last
from rollbook.cli.output import clean, number
from rollbook.system.texts import json_text


@click.command()
@run_argument_or_last
@dir_option
@click.option(
    "-n",
    "--rows",
    "last",
    default=10,
    type=click.IntRange(min=0),
    show_default=True,
    help="Begin this many rows back.",
)
@click.option("-f", "--follow", is_flag=True, help="Keep printing until the run ends, or Ctrl-C.")
@click.option("--keys", default=None, help="Only keys that match this regular expression.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def tail(run: str, root: str, last: int, follow: bool, keys: str | None, as_json: bool) -> None:
    """Print rows as they are written.

    \b
    Examples:
      rollbook tail last
      rollbook tail -f cartpole/ppo --keys 'train/return'
      rollbook tail last -n 100 --json
    """
    from collections import deque

    book = find_book(run, root, lambda book: bool(book.keys()), "rows")
    try:
        pattern = re.compile(keys) if keys else None
    except re.error as err:
        raise click.BadParameter(f"{keys!r} is not a regular expression: {err}", param_hint="--keys") from None
    newest: deque[str] = deque(maxlen=max(0, last))
    looks = 0

    def stop() -> bool:  # called before each read; the first read returns all rows
        nonlocal looks
        looks += 1
        if looks == 2:
            for line in newest:
                click.echo(line)
        return not follow or book.status != "running"

    try:
        for row in book.tail(from_start=True, stop=stop):
            values = {key: value for key, value in row.values.items() if pattern is None or pattern.search(key)}
            if not values:  # nor has a mark any
                continue
            line = _line(row.time, row.clocks, values, as_json)
            if looks > 1:
                click.echo(line)
            else:
                newest.append(line)
        if looks == 1:
            stop()
    except KeyboardInterrupt:  # the way to leave `tail -f`
        return


def _line(time: float, clocks: Mapping[str, int], values: Mapping[str, object], as_json: bool) -> str:
    if as_json:
        return json_text({"time": time, "clocks": dict(clocks), "values": values})
    shown = " ".join(f"{name}={reading:,}" for name, reading in clocks.items())
    cells = "  ".join(f"{clean(key)}={number(value)}" for key, value in values.items())
    return f"{click.style(shown, dim=True)}  {cells}"
