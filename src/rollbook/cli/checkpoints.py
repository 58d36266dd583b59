"""`rollbook checkpoints`."""

from __future__ import annotations

from pathlib import Path

import click

from rollbook.cli.find import dir_option, find_book, format_options, run_argument_or_last
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import print_json, print_rows, remark


@click.command()
@run_argument_or_last
@click.argument("which", required=False)
@dir_option
@click.option("--all", "everything", is_flag=True, help="Also those that were deleted.")
@format_options
def checkpoints(run: str, which: str | None, root: str, everything: bool, as_json: bool, as_csv: bool) -> None:
    """List the checkpoints of a run, or print the path of one: "best", "last" or an id.

    \b
    Examples:
      rollbook checkpoints last
      rollbook checkpoints cartpole/ppo --json
      python evaluate.py "$(rollbook checkpoints cartpole/ppo best)"
    """
    book = find_book(run, root, lambda book: book.row_count("checkpoints") > 0, "checkpoints")
    if which is not None:
        path = str(book.checkpoint(which).path)
        if as_json:
            print_json({"path": path})
        elif as_csv:
            print_rows([{"path": path}], as_csv=True)
        else:
            click.echo(path)
        return
    rows: dict[str, dict[str, object]] = {}
    history = book.checkpoint_history()
    for row in history.rows:
        if row.get("kept") is False:
            rows.get(str(row["checkpoint_id"]), {})["state"] = "deleted"
        else:
            rows[str(row["checkpoint_id"])] = _line(row, book.clocks, history.file_of(row))
    shown = [row for row in rows.values() if everything or row["state"] == "kept"]
    if as_json or as_csv:
        print_rows(shown, as_json=as_json, as_csv=as_csv)
        return
    clocks = [name for name in book.clocks if any(row[name] is not None for row in shown)]
    several = [name for name in ("attempt", "state") if len({row[name] for row in shown}) > 1]
    names = ["id", "best", "score", "path", *several, *clocks]
    print_fitted(shown, names, width=terminal_width())
    if not everything and len(rows) > len(shown):
        remark(f"{len(rows) - len(shown)} more were deleted; --all lists them")


def _line(row: dict[str, object], clocks: tuple[str, ...], path: Path) -> dict[str, object]:
    return {
        "id": row["checkpoint_id"],
        "best": "best" if row.get("is_best") else "",
        "score": row.get("score"),
        **{name: row.get(name) for name in clocks},
        "attempt": row.get("attempt"),
        "state": "kept" if path.exists() else "missing",
        "path": row.get("path"),
    }
