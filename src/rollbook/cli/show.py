"""`rollbook show`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from rollbook.cli.find import dir_option, find_book, run_argument
from rollbook.cli.output import ago, clean, number, print_rows, remark, seconds
from rollbook.files import read_json
from rollbook.tables import TABLES

if TYPE_CHECKING:
    from rollbook.book.book import Book


def summary(book: Book) -> dict[str, Any]:
    """What `show` prints, as plain data."""
    info = book.info
    latest = book.latest()
    return {
        "path": str(book.path),
        "project": book.project,
        "name": book.name,
        "id": book.id,
        "status": book.status,
        "seed": book.seed,
        "attempts": len(book.attempts),
        "created": info.get("created"),
        "ended": info.get("ended"),
        "config": dict(book.config),
        "summary": dict(book.summary),
        "tables": {name: rows for name in TABLES if (rows := _rows(book, name))},
        "keys": {
            key: {"value": value, **clocks}
            for key, (value, clocks, _time) in sorted(latest.items(), key=lambda item: _rank(item[0]))
        },
        "drops": info.get("drops") or {},
        "silent_sinks": {
            name: str(trouble.get("words"))
            for name, trouble in read_json(book.path / "data" / "keeper" / "troubles.json").items()
            if isinstance(trouble, dict)
        },
        "problems": [str(problem) for problem in book.problems()],
    }


def _rank(key: str) -> tuple[bool, str]:
    """What was logged first, the host and ourselves last; by name within each."""
    return key.startswith(("host/", "rollbook/")), key


def _rows(book: Book, table: str) -> int:
    found = book.table(table)
    if table == "checkpoints" and found.num_rows:  # a row for each word about one: saved, no longer kept
        return len(set(found.column("checkpoint_id").to_pylist()))
    return int(found.num_rows)


@click.command()
@run_argument
@dir_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(run: str, root: str, as_json: bool) -> None:
    """Show what is in a run: its identity, its tables, the last value of every key.

    \b
    Examples:
      rollbook show last
      rollbook show cartpole/ppo
      rollbook show runs/cartpole/ppo-k3v9x2ab --json
    """
    print_summary(find_book(run, root), as_json=as_json)


def print_summary(book: Book, *, as_json: bool = False) -> None:
    """Print what is in a book."""
    about = summary(book)
    if as_json:
        click.echo(json.dumps(about, indent=1, default=str))
        return
    began, ended = about["created"], about["ended"]
    took = f", took {seconds(ended - began)}" if began and ended else ""
    attempts = f", {about['attempts']} attempts" if about["attempts"] > 1 else ""
    title = f"{clean(about['project'])}/{clean(about['name'])}"
    click.echo(f"{click.style(title, bold=True)}  {clean(about['id'])}  {clean(about['status'])}{attempts}")
    seed = "" if about["seed"] is None else f"seed {about['seed']}, "
    click.echo(f"{seed}begun {ago(began)}{took}")
    click.echo(clean(about["path"]))
    if about["config"]:
        pairs = [f"{clean(key)}={clean(value)}" for key, value in about["config"].items()]
        click.echo("config   " + ", ".join(pairs)[:300])
    if about["summary"]:
        click.echo("summary  " + ", ".join(f"{clean(k)}={number(v)}" for k, v in about["summary"].items()))
    if about["tables"]:
        click.echo("tables   " + ", ".join(f"{name} {rows:,}" for name, rows in about["tables"].items()))
    if about["keys"]:
        click.echo()
        clocks = [c for c in book.clocks if any(c in cell for cell in about["keys"].values())]
        print_rows(
            [
                {"key": key, "last": cell["value"], **{c: cell.get(c) for c in clocks}}
                for key, cell in about["keys"].items()
            ]
        )
    for cause, n in about["drops"].items():
        remark(f"{cause}: {n:,}")
    for words in about["silent_sinks"].values():
        remark(clean(words))
    for problem in about["problems"]:
        remark(f"problem: {clean(problem)}")
