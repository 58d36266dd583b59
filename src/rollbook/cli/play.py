"""`rollbook play`."""

from __future__ import annotations

import os
import shutil

import click

from rollbook.cli.find import dir_option, find_book, run_argument
from rollbook.cli.output import remark


@click.command()
@run_argument
@dir_option
@click.option("--episode", default="best", show_default=True, help='"best", "worst", "last", or the id of an episode.')
@click.option("-o", "--out", default=None, help="Copy the video to this file.")
@click.option("--open/--no-open", "show", default=True, help="Open it with the system's player.")
def play(run: str, root: str, episode: str, out: str | None, show: bool) -> None:
    """Show or write the video of an episode.

    \b
    Examples:
      rollbook play last
      rollbook play cartpole/ppo --episode worst -o worst.mp4
    """
    from rollbook.store.videos import video_of_episode

    book = find_book(run, root)
    path = video_of_episode(book, episode)
    if out:
        shutil.copyfile(path, out)
        remark(f"wrote {out}")
    click.echo(out or str(path))
    if show and not out and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.name == "nt"):
        click.launch(str(path))
