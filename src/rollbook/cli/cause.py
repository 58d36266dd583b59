"""`rollbook cause`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.book.questions import Cause
from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_book, run_argument_or_last
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import clean, json_option, print_json, print_sentence


@click.command()
@run_argument_or_last
@dir_option
@asks(Cause, short={"key": "-k", "x": "-x"})
@json_option
def cause(run: str, root: str, as_json: bool, **options: Any) -> None:
    """Show what happened near a point of a run: what left its usual range, and what every table has there.

    \b
    Examples:
      rollbook cause last --at 1200 --key train/return
      rollbook cause cartpole/ppo --at 5000 --everything --json
    """
    if options["at"] is None:
        raise click.UsageError("say --at, the position on the axis, such as --at 5000")
    found = find_book(run, root).cause(**options)
    if as_json:
        print_json({"sentences": found.sentences(), **found.as_data()})
        return
    width = terminal_width() or 80
    for sentence in found.sentences():
        print_sentence(clean(sentence), width)
    data = found.as_data()
    tables = {name: data[name] for name in ("episodes", "samples", "values") if data.get(name)} | data.get("others", {})
    for name, rows in tables.items():
        click.echo()
        click.echo(click.style(name, bold=True))
        names = list(dict.fromkeys(column for row in rows for column in row if column not in ("time", "attempt")))
        print_fitted(rows, names, width=width, hint="--json shows all columns")
    if found.log:
        click.echo()
        click.echo(click.style(clean(found.log_name or ""), bold=True))
        for line in found.log:
            click.echo(clean(line.text))
