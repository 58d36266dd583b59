"""The child that seals: `python -m rollbook.keeper.sealing_child RUN [--final]`; `--serve`: run after run.

With --final it also writes the run's results into run.json (book.results). It has pyarrow loaded anyway, which the
keeper never does.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from rollbook.schema import manifest
from rollbook.storage import most_processes, seal
from rollbook.system.guard import handled_by


def main(arguments: Sequence[str], report_to: TextIO | None = None) -> int:
    """Seal a run; 0 if that was done. The results can be computed later, so a failure there is only reported.

    Args:
      report_to: gets what could not be done, a line each. None: stderr.
    """
    log = report_to or sys.stderr
    options = _parser().parse_args(arguments)
    try:
        report = seal(options.run, final=options.final, processes=most_processes(options.at_once), up_to=options.up_to)
    except OSError as err:
        log.write(f"rollbook: sealing {options.run} stopped: {err}\n")
        return 1
    for problem in report.problems:
        log.write(f"rollbook: {problem}\n")
    if manifest.look(options.run).retention:
        from rollbook.book import Book, Retention

        with handled_by(_note, log, "rollouts were not trimmed to their limit"):
            Retention(Book(options.run)).trim_if_due()
    if options.final:
        from rollbook.book import Book, write_results

        with handled_by(_note, log, "what the run came to is not in run.json yet"):
            write_results(Book(options.run))
    return 0


@functools.cache
def _parser() -> argparse.ArgumentParser:
    """Made once: in a process that seals many small runs it would take a tenth of the time."""
    parser = argparse.ArgumentParser(
        prog="python -m rollbook.keeper.sealing_child", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("run", help="the run's folder")
    parser.add_argument("--final", action="store_true", help="the run is over: also merge its parts")
    parser.add_argument("--at-once", type=int, default=1, help="so many runs may be sealed at once on this host")
    parser.add_argument(
        "--up-to", default="", help="a JSON file: rows behind the `cursor` in it are left in the journal"
    )
    return parser


def _note(log: TextIO, what: str, err: BaseException) -> None:
    log.write(f"rollbook: {what}: {err}\n")


def serve() -> None:
    """Seal what each line of stdin requests, and answer with the status.

    A line is a JSON list: the path of the log, then the arguments; the bytes of each as characters of Latin-1.
    """
    answers = os.dup(1)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    for line in sys.stdin:
        log_path, *words = [os.fsdecode(word.encode("latin-1")) for word in json.loads(line)]
        try:
            log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            os.dup2(log, 2)
            os.close(log)
            status = main(words)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            status = 1
        sys.stderr.flush()
        os.dup2(nothing, 2)
        os.write(answers, str(status).encode())


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        sys.exit(main(sys.argv[1:]))
