"""`rollbook board`."""

from __future__ import annotations

import os

import click

from rollbook.cli.find import dir_option
from rollbook.cli.output import clean, json_option, print_json, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.runs.boards import Board


@click.command()
@click.argument("name", required=False)
@click.argument("charts", nargs=-1, metavar="[CHART]...")
@dir_option
@click.option("--x", default=None, help='The x-axis: a clock, "time", "relative", or a key.')
@click.option("--smoothing", default=0.0, type=click.FloatRange(0, 0.99), help="Smoothing, from 0 to 0.99.")
@click.option("--log", is_flag=True, help="A logarithmic y.")
@click.option("--where", default=None, help="The text of the search: words or a condition.")
@click.option("--by", default=None, help='Groups: fields such as config.lr; "auto" or "none".')
@click.option("--columns", default=None, help='Columns of the table, such as "config.lr,last:test/return".')
@click.option("--sort", default=None, help="A column to sort by; -column has the highest first.")
@click.option("--first/--not-first", default=None, help="Whether the page opens with it.")
@click.option("--remove", is_flag=True, help="Remove the board.")
@json_option
def board(
    name: str | None,
    charts: tuple[str, ...],
    root: str,
    x: str | None,
    smoothing: float,
    log: bool,
    where: str | None,
    by: str | None,
    columns: str | None,
    sort: str | None,
    first: bool | None,
    remove: bool,
    as_json: bool,
) -> None:
    """Save a view of the page under a name, so that it opens with the charts that matter; or list the boards.

    A CHART is a key, an expression with signs between blanks, or several keys with a comma between them. The page lists
    boards under "Board", and opens with the one that is --first. Without NAME, the boards of the folder are listed.

    \b
    Examples:
      rollbook board mine test/return "loss/policy, loss/value" --first
      rollbook board sweep test/return --by config.lr --smoothing 0.6
      rollbook board
      rollbook board mine --remove
    """
    from rollbook.errors import RunNotFound
    from rollbook.runs.boards import Boards

    if not os.path.isdir(root):
        raise RunNotFound(f"board: there is no folder {clean(root)}.", "Say where the runs are with --dir")
    boards = Boards(root)
    if name is None:
        entries = boards.entries()
        if as_json:
            print_json([_as_data(one) for one in entries])
            return
        for one in entries:
            first_one = "  (the page opens with it)" if one.first else ""
            click.echo(clean(f"{one.name}{first_one}  {one.state.get('pin', '')}".rstrip()))
        if not entries:
            remark(f"no boards are stored with the runs of {clean(root)}: rollbook board NAME CHART … saves one")
        return
    if remove:
        boards.remove(name)
        if as_json:
            print_json([_as_data(one) for one in boards.entries()])
        return
    saved = boards.save(
        name,
        charts,
        x=x,
        smoothing=smoothing,
        log=log,
        where=where,
        group_by=by,
        columns=columns.split(",") if columns else (),
        sort=sort,
        first=first,
    )
    if as_json:
        print_json([_as_data(saved)])
    else:
        remark(f"saved in {clean(boards.path)}" + (", and the page opens with it" if saved.first else ""))


def _as_data(board: Board) -> dict[str, object]:
    return {"name": board.name, "first": board.first, "state": board.state}
