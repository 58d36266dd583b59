"""`rollbook verify`, `rollbook repair`, `rollbook seal`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_folder, find_folders
from rollbook.cli.output import clean, json_option, print_json, remark
from rollbook.runs.questions import Verify
from rollbook.schema.addresses import is_address
from rollbook.schema.problems import Problem
from rollbook.system.files import pasted
from rollbook.system.texts import amount


@click.command()
@click.argument("runs", nargs=-1)
@dir_option
@asks(Verify)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(runs: tuple[str, ...], root: str, quick: bool, as_json: bool) -> None:
    """Report what is wrong with runs, if anything. Changes nothing.

    Exit status 1 if something is wrong. Integers that readers round are named and do not count: the files have every
    digit. A run in a remote is fetched whole and checked piece by piece.

    \b
    Examples:
      rollbook verify last
      rollbook verify last --quick             only what opening the files shows
      rollbook verify cartpole
      rollbook verify runs/cartpole/*
      rollbook verify s3://bucket/runs
    """
    from rollbook.errors import ForeignManifest
    from rollbook.runs.verifying import problems_of as problems_of_run

    problems_of: dict[str, list[Problem]] = {}
    for run, folder in _meant(runs or ("last",), root):
        try:
            problems_of[run] = problems_of_run(folder, Verify(quick=quick))
        except ForeignManifest as err:  # another program's run.json: not checked
            remark(f"passed over: {clean(err)}")
    if as_json:
        print_json(problems_of)
    else:
        for run, problems in problems_of.items():
            click.echo(f"{clean(run)}: {'sound' if not problems else amount(len(problems), 'problem')}")
            for problem in problems:
                click.echo(f"  {clean(problem)}")
    raise SystemExit(any(problem.kind != "rounded" for problems in problems_of.values() for problem in problems))


@click.command()
@click.argument("runs", nargs=-1, required=True)
@dir_option
@click.option("--force", is_flag=True, help="Also if it is unknown whether a writer on another host is alive.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def repair(runs: tuple[str, ...], root: str, force: bool, as_json: bool) -> None:
    """Save what can be saved of damaged or orphaned runs: seal what is whole, set aside what is not. What is lost is
    recorded in the run and reported by every reader from then on.

    \b
    Examples:
      rollbook repair last
      rollbook repair runs/cartpole/ppo-k3v9x2ab --force
    """
    from rollbook.book.repair import repair as repair_run
    from rollbook.errors import ForeignManifest

    done: dict[str, list[str]] = {}
    _refuse_remotes("repair", (*runs, root))
    meant = list(_meant(runs, root))
    for run, folder in meant:
        try:
            done[run] = repair_run(folder, force=force)
        except ForeignManifest as err:
            remark(f"passed over: {clean(err)}")
            continue
        for line in () if as_json else done[run]:
            click.echo(clean(line if len(meant) == 1 else f"{run}: {line}"))
    if as_json:
        print_json(done)


def _refuse_remotes(command: str, words: tuple[str, ...]) -> None:
    from rollbook.errors import BadInput

    for word in filter(is_address, words):
        raise BadInput(
            f"{command} {word}: this is a remote, and {command} works on local folders. Fetch the run with: "
            f"rollbook pull {pasted(word)}"
        )


def _meant(words: tuple[str, ...], root: str) -> Iterator[tuple[str, str]]:
    """(how it is called, folder) of each run: by its word if that names one run, else by its folder."""
    for word in words:
        folders = find_folders(word, root)
        for folder in folders:
            near = os.path.relpath(folder)
            is_named = len(folders) == 1 and (not os.path.isdir(word) or os.path.samefile(word, folder))
            yield word if is_named else folder if near.startswith(os.pardir) else near, folder


@click.command()
@click.argument("run")
@dir_option
@json_option
def seal(run: str, root: str, as_json: bool) -> None:
    """Turn the journal of a run into Parquet now: what its writers have finished.

    \b
    Example:
      rollbook seal last
    """
    from rollbook.book.repair import seal as seal_run

    _refuse_remotes("seal", (run, root))
    report = seal_run(find_folder(run, root))
    remark(clean(report))
    if as_json:
        print_json(vars(report))
