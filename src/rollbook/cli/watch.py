"""`rollbook watch`."""

from __future__ import annotations

import sys

import click

from rollbook.cli.find import dir_option, find_book, run_argument_or_last
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
    info = book.run_info()
    view = Terminal(every_seconds=seconds, total=info.total, stream=sys.stdout)
    view.open(info)
    try:
        view.write(book.rows_so_far())
        if book.status != "running":
            view.end(book.status)
            return
        if once:
            return
        for row in book.tail(from_start=False, poll_seconds=min(0.2, seconds), stop=lambda: book.status != "running"):
            view.write([row])
        view.end(book.status)
    except KeyboardInterrupt:
        return
    finally:
        view.close()
