"""`rollbook tail`."""

from __future__ import annotations

import re

import click

from rollbook.cli.find import dir_option, find_book, run_argument_or_last
from rollbook.cli.output import clean, number
from rollbook.ground.texts import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.protocols import Row


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
    help="How many rows back to begin.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends, or Ctrl-C.")
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
    newest: deque[Row] = deque(maxlen=max(0, last))
    looks = 0

    def stop() -> bool:  # called before each read; the first read returns all rows
        nonlocal looks
        looks += 1
        if looks == 2:
            for row in newest:
                _print(row, pattern, as_json)
        return not follow or book.status != "running"

    try:
        for row in book.tail(from_start=True, stop=stop):
            if looks > 1:
                _print(row, pattern, as_json)
            elif not row.mark and _chosen(row, pattern):
                newest.append(row)
        if looks == 1:
            stop()
    except KeyboardInterrupt:  # the way to leave `tail -f`
        return


def _chosen(row: Row, pattern: re.Pattern[str] | None) -> dict[str, object]:
    return {key: value for key, value in row.values.items() if pattern is None or pattern.search(key)}


def _print(row: Row, pattern: re.Pattern[str] | None, as_json: bool) -> None:
    values = _chosen(row, pattern)
    if not values:
        return
    if as_json:
        click.echo(json_text({"time": row.time, "clocks": dict(row.clocks), "values": values}))
        return
    clocks = " ".join(f"{name}={value:,}" for name, value in row.clocks.items())
    cells = "  ".join(f"{clean(key)}={number(value)}" for key, value in values.items())
    click.echo(f"{click.style(clocks, dim=True)}  {cells}")
