"""`rollbook watch`."""

from __future__ import annotations

import sys

import click

from rollbook.cli.find import dir_option, find_book, run_argument_or_last


@click.command()
@run_argument_or_last
@dir_option
@click.option(
    "--seconds", default=1.0, type=click.FloatRange(min=0.05), show_default=True, help="Seconds between two updates."
)
@click.option("--once", is_flag=True, help="Print the state once and end.")
def watch(run: str, root: str, seconds: float, once: bool) -> None:
    """Watch a run live while another process trains it; ends with the run, or with Ctrl-C.

    \b
    Examples:
      rollbook watch last
      rollbook watch cartpole/ppo --once
    """
    from rollbook.keeper.replaying import follow

    try:
        follow(find_book(run, root), sys.stdout, seconds=seconds, once=once)
    except KeyboardInterrupt:  # the way to leave
        click.echo()
