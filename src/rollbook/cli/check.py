"""`rollbook check`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.find import find_runs, format_options, runs_options
from rollbook.cli.output import print_finding, print_rows, remark
from rollbook.system.texts import amount

_LEVELS = {"never": (), "warn": ("warn", "fail"), "fail": ("fail",)}


@click.command()
@runs_options
@click.option("--rules", default="", help='Names, comma-separated; with "-" in front: all but these.')
@click.option(
    "--fail-on",
    type=click.Choice(list(_LEVELS)),
    default="warn",
    show_default=True,
    help="Exit with 1 if a rule says something of this level or a higher one.",
)
@format_options
def check(
    runs: tuple[str, ...], root: str, where: str | None, rules: str, fail_on: str, as_json: bool, as_csv: bool
) -> None:
    """Run the health rules over existing runs: finished, imported, or of another tool.

    \b
    Examples:
      rollbook check last
      rollbook check cartpole --fail-on fail --json
      rollbook check runs --rules=-learns_nothing,-entropy
    """
    from rollbook.runs.checking import check as ask

    found = find_runs(runs, root, where)
    asked = [name.strip() for name in rules.split(",") if name.strip()] or None
    created = [float(row.get("created") or 0.0) for row in found.rows()]
    of_each: list[list[dict[str, Any]]] = [[] for _ in created]
    earlier: list[Any] = []  # some rules compare a run with those before
    for index in sorted(range(len(created)), key=created.__getitem__):
        book = found[index]
        of_each[index] = [
            {
                "run": book.id,
                "project": book.project,
                "name": book.name,
                "level": alert.level,
                "rule": alert.rule,
                "key": alert.key,
                "message": alert.message,
                "clocks": dict(alert.clocks),
            }
            for alert in ask(book, asked, earlier)
        ]
    rows = [row for some in of_each for row in some]
    if as_json or as_csv:
        print_rows(rows, as_json=as_json, as_csv=as_csv, columns=None if rows else ())
    else:
        for row in rows:
            print_finding(row)
        odd = len({row["run"] for row in rows if row["level"] != "note"})
        looked = len(found)
        remark(f"{amount(looked, 'run')} looked at; rules found fault with {odd:,}")
    if any(row["level"] in _LEVELS[fail_on] for row in rows):
        raise SystemExit(1)
