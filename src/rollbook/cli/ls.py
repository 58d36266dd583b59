"""`rollbook ls`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.find import dir_option, format_options, runs_below
from rollbook.cli.fitted import print_fitted, terminal_width
from rollbook.cli.output import ago, clean, print_arrow, print_rows, remark, seconds


@click.command()
@click.argument("folder", metavar="[DIR]", default=None, required=False)
@dir_option
@click.option("--where", default=None, help="Condition, such as \"config.lr < 3e-4 and status == 'finished'\".")
@click.option(
    "--limit", default=50, type=click.IntRange(min=1), show_default=True, help="How many at most, newest first."
)
@format_options
def ls(folder: str | None, root: str, where: str | None, limit: int, as_json: bool, as_csv: bool) -> None:
    """List the runs below a folder, newest first.

    CSV has each setting of the configuration as a column, JSON all of run.json that a listing knows.

    \b
    Examples:
      rollbook ls
      rollbook ls results --where "seed == 3"
      rollbook ls --json | jq '.[].path'
    """
    root = folder or root
    runs = runs_below(root)
    problems = runs.problems
    if not runs and not problems and not (as_json or as_csv):
        remark(f"there is no run below {root}. Record one with: rollbook demo")
        return
    if where:
        runs = runs.where(where)
    shown = runs.newest(limit)
    if as_csv:
        print_arrow(shown.table(), as_csv=True)
    elif as_json:
        print_rows(shown.rows(), as_json=True)
    else:
        lines = [_line(row) for row in shown.rows()]
        print_fitted(lines, _COLUMNS, width=terminal_width(), hint="--json and --csv show all columns")
        for problem in problems:
            remark(f"left out: {clean(problem)}")
    if len(runs) > limit:
        remark(f"… {len(runs) - limit:,} older runs; --limit shows them")


_COLUMNS = ("run", "id", "status", "seed", "begun", "took", "attempts", "tags")


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
