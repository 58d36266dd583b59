"""`rollbook watch`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from rollbook.cli.find import dir_option, find_book, run_argument_or_last
from rollbook.protocols import Row, RunInfo
from rollbook.sinks.terminal import Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book


@click.command()
@run_argument_or_last
@dir_option
@click.option("--seconds", default=1.0, type=click.FloatRange(min=0.05), show_default=True, help="How often to look.")
@click.option("--once", is_flag=True, help="Print the state once and end.")
def watch(run: str, root: str, seconds: float, once: bool) -> None:
    """A live view of a run that someone else trains; ends when it does, or with Ctrl-C.

    \b
    Examples:
      rollbook watch last
      rollbook watch cartpole/ppo --once
    """
    follow(find_book(run, root), seconds=seconds, once=once)


def follow(book: Book, *, seconds: float = 1.0, once: bool = False) -> None:
    """Draw the state of a run until it ends; Ctrl-C leaves quietly.

    Args:
      seconds: draw at most this often.
      once: draw the present state and return.
    """
    info = book.info
    view = Terminal(every_seconds=seconds, total=info["total"], stream=sys.stdout)
    x = str(info.get("x") or "")
    view.open(
        RunInfo(folder=book.path, project=book.project, name=book.name, id=book.id, clocks=tuple(book.clocks), x=x)
    )
    try:
        view.write(list(_so_far(book)))
        if book.status != "running":
            view.board.status = book.status
            return
        if once:
            return
        for row in book.tail(from_start=False, poll_seconds=min(0.2, seconds), stop=lambda: book.status != "running"):
            view.write([row])
        view.board.status = book.status
        view.write([Row(time=view.board.latest, clocks={}, values={})])
    except KeyboardInterrupt:
        return
    finally:
        view.close()


def _so_far(book: Book) -> Iterator[Row]:
    """The last value of every key, and the time spent in every stage, as rows."""
    created = float(book.info.get("created") or 0.0)
    stages: dict[str, float] = {}
    timings = book.timings()
    if timings.num_rows:
        for name, took in zip(timings["name"].to_pylist(), timings["seconds"].to_pylist(), strict=True):
            stages[name] = stages.get(name, 0.0) + took
    yield Row(time=created, clocks={}, values={f"time/{name}_seconds": took for name, took in stages.items()})
    latest = sorted(book.latest().items(), key=lambda item: item[1][2])
    for key, (value, clocks, time) in latest:
        yield Row(time=time, clocks=clocks, values={key: value}, attempt=len(book.attempts))
