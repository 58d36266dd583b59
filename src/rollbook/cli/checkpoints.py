"""`rollbook checkpoints`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.book.questions import Checkpoints
from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_book, format_options, run_argument_or_last
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import in_microseconds, print_arrow, print_json, print_rows, remark


@click.command()
@run_argument_or_last
@click.argument("which", required=False)
@dir_option
@asks(Checkpoints, short={"everything": "--all"})
@format_options
def checkpoints(run: str, which: str | None, root: str, as_json: bool, as_csv: bool, **options: Any) -> None:
    """List the checkpoints of a run, or print the path of one: "best", "last" or an id.

    \b
    Examples:
      rollbook checkpoints last
      rollbook checkpoints cartpole/ppo --order-by "score desc" --limit 3 --json
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
    table = book.checkpoints(**options)
    if as_json or as_csv:
        print_arrow(table, as_json=as_json, as_csv=as_csv)
    else:
        rows = in_microseconds(table).to_pylist()
        for row in rows:
            row |= {"id": row["checkpoint_id"], "best": "best" if row["is_best"] else ""}
        clocks = [name for name in book.clocks if any(row.get(name) is not None for row in rows)]
        several = [name for name in ("attempt", "status") if len({row[name] for row in rows}) > 1]
        print_fitted(rows, ["id", "best", "score", "path", *several, *clocks], width=terminal_width())
    if not options["everything"] and (gone := book.checkpoints(everything=True).num_rows - book.checkpoints().num_rows):
        remark(f"{gone:,} more were deleted, or their files are gone; --all lists them")
