"""`rollbook logs`."""

from __future__ import annotations

import os
import time
from typing import Any

import click

from rollbook.book.questions import Log
from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_book, run_argument_or_last
from rollbook.cli.output import clean, json_option, print_json, print_rows
from rollbook.system.texts import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.questions import LogLine

_LOOK_SECONDS = 0.3


@click.command()
@run_argument_or_last
@dir_option
@asks(Log, short={"name": "--log", "lines": "-n"}, defaults={"lines": 50})
@click.option("-f", "--follow", is_flag=True, help="Keep printing until the run ends, or Ctrl-C.")
@click.option("--list", "as_list", is_flag=True, help="List the logs of the run instead.")
@json_option
def logs(run: str, root: str, follow: bool, as_list: bool, as_json: bool, **options: Any) -> None:
    """Print what the program of a run printed, stdout and stderr; or another log of the run.

    \b
    Examples:
      rollbook logs last
      rollbook logs -f cartpole/ppo
      rollbook logs last --search "warning nan" -n 20
      rollbook logs last --log keeper
    """
    from rollbook.book.questions import asked_log, end_of_lines, log_named, part_of_log

    book = find_book(run, root, lambda book: any(log.bytes for log in book.logs()), "log")
    if as_list:
        rows = [{"name": log.name, "label": log.label, "bytes": log.bytes} for log in book.logs()]
        if as_json:
            print_json(rows)
        else:
            print_rows(rows)
        return
    question = Log(**options)
    path = os.path.join(book.path, *log_named(str(book.path), question.name).name.split("/"))
    start = end_of_lines(path) if follow else 0  # first: a line that comes meanwhile is printed once
    shown = [line for line in asked_log(question, str(book.path)).lines if not follow or line.offset < start]
    if as_json and not follow:
        print_json([_plain(line) for line in shown])
        return
    for line in shown:
        _print(line, as_json)
    try:
        ends = not follow
        while not ends:
            ends = book.status != "running"
            start = min(start, os.path.getsize(path))  # its middle may have been left out
            grown = part_of_log(path, start=start, lines=2_000, search=question.search)
            start = grown.end
            for line in grown.lines:
                _print(line, as_json)
            if not ends:
                time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:  # the way to leave it
        return


def _plain(line: LogLine) -> dict[str, object]:
    return {"time": line.time, "stream": "stderr" if line.is_error() else "stdout", "text": line.bare()}


def _print(line: LogLine, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(_plain(line)))
        return
    stamp = "" if line.time is None else click.style(time.strftime("%H:%M:%S ", time.localtime(line.time)), dim=True)
    text = clean(line.bare())
    click.echo(stamp + (click.style(text, fg="yellow") if line.is_error() else text))
