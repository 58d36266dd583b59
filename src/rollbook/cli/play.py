"""`rollbook play`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from rollbook.cli.find import dir_option, find_book, run_argument_or_last
from rollbook.cli.output import json_option, print_json, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book


@click.command()
@run_argument_or_last
@dir_option
@click.option("--episode", default="best", show_default=True, help='"best", "worst", "last", or the id of an episode.')
@click.option("-o", "--out", default=None, help="Copy the video to this file.")
@click.option("--no-open", is_flag=True, help="Do not open it with the system's player.")
@json_option
def play(run: str, root: str, episode: str, out: str | None, no_open: bool, as_json: bool) -> None:
    """Show or write the video of an episode.

    \b
    Examples:
      rollbook play last
      rollbook play cartpole/ppo --episode worst -o worst.mp4
    """
    book = find_book(run, root, lambda book: book.media("video").num_rows > 0, "video")
    path = book.video_of(episode)
    remark(_description(book, path))
    if out:
        if path.suffix != Path(out).suffix:  # without an MP4 encoder the video is a GIF
            remark(f"the video is a {path.suffix[1:].upper()}, so the copy is called that; MP4 needs rollbook[video]")
            out = str(Path(out).with_suffix(path.suffix))
        shutil.copyfile(path, out)
        remark(f"wrote {out}")
    if as_json:
        print_json({"video": out or str(path), "episode": episode})
    else:
        click.echo(out or str(path))
    if no_open or out or as_json:
        return
    if _has_display():
        click.launch(str(path))
    else:
        remark("there is no display here to show it on; -o FILE copies it")


def _has_display() -> bool:
    if os.name == "nt" or sys.platform == "darwin":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _description(book: Book, path: Path) -> str:
    """The content of the video, in a line."""
    from rollbook.cli.one_episode import end_of
    from rollbook.cli.output import clean, number

    for row in book.media("video").to_pylist():
        if row.get("episode_id") and Path(str(row["path"])).stem == path.stem:
            episode = book.episode(str(row["episode_id"]))
            video = f"{number(row.get('frames'))} frames at {number(row.get('fps'))} a second"
            length = f", {number(episode['length'])} steps" if episode.get("length") is not None else ""
            end = f", {end_of(episode)}" if end_of(episode) != "-" else ""
            return f"episode {clean(episode.id)}: return {number(episode.get('return'))}{length}{end}; {video}"
    return path.name
