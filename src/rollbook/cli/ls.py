"""`rollbook ls`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.find import format_options
from rollbook.cli.output import ago, clean, print_rows, remark, seconds


@click.command()
@click.argument("root", default=None, required=False)
@click.option("--where", default=None, help="Condition, such as \"config.lr < 3e-4 and status == 'finished'\".")
@click.option("--limit", default=50, show_default=True, help="How many at most, newest first.")
@format_options
def ls(root: str | None, where: str | None, limit: int, as_json: bool, as_csv: bool) -> None:
    """List the runs below a folder, newest first.

    \b
    Examples:
      rollbook ls
      rollbook ls results --where "seed == 3"
      rollbook ls --json | jq '.[].path'
    """
    import os

    from rollbook.runs.catalog import open as open_runs

    runs = open_runs(root or os.environ.get("ROLLBOOK_DIR", "runs"))
    problems = runs.problems
    if where:
        runs = runs.where(where)
    found = sorted(runs.rows(), key=lambda row: row.get("created") or 0, reverse=True)
    shown = found[:limit]
    if as_json or as_csv:
        print_rows(shown, as_json=as_json, as_csv=as_csv)
        return
    print_rows([_line(row) for row in shown])
    for problem in problems:
        remark(f"left out: {clean(problem)}")
    if len(found) > limit:
        click.echo(f"… {len(found) - limit:,} older runs; --limit shows them", err=True)


def _line(row: dict[str, Any]) -> dict[str, Any]:
    created, ended = row.get("created"), row.get("ended")
    return {
        "run": f"{row['project']}/{row['name']}",
        "id": row["id"],
        "status": row["status"],
        "seed": row.get("seed"),
        "attempts": row.get("attempts"),
        "begun": ago(created),
        "took": seconds(ended - created) if created and ended else "-",
        "tags": " ".join(row.get("tags") or ()),
    }
