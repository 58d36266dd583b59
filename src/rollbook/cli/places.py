"""`rollbook push`, `rollbook pull`, `rollbook sync`: runs between this machine and a remote."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option, find_folder
from rollbook.cli.output import clean, remark


@click.command()
@click.argument("run")
@click.argument("url", required=False)
@dir_option
@click.option("--anew", is_flag=True, help="Upload again even if the run was deleted there.")
def push(run: str, url: str | None, root: str, anew: bool) -> None:
    """Upload a run to a remote, such as s3://bucket/prefix; what is there already is skipped.

    Interrupt and repeat it as you like. URL is needed once; a run that was started with remote= knows it.

    \b
    Examples:
      rollbook push last s3://bucket/lab
      rollbook push cartpole/ppo
    """
    from rollbook.remote.push import push as push_folder

    folder = find_folder(run, root)
    report = push_folder(folder, url, anew=anew)
    remark(f"{clean(folder)}: {report}")


@click.command()
@click.argument("url")
@dir_option
def pull(url: str, root: str) -> None:
    """Download runs from a remote: all of it, a project, or one run.

    Files are checked by their checksums; those that match are skipped.

    \b
    Examples:
      rollbook pull s3://bucket/lab/cartpole/ppo-k3v9x2ab
      rollbook pull s3://bucket/lab --dir runs
    """
    from rollbook.remote.pull import pull as pull_run
    from rollbook.remote.views import address_of
    from rollbook.runs.remote import open_address, root_of

    runs = open_address(url)
    place, _ = root_of(url)
    for row in runs.rows():
        _, run = address_of(str(row["path"]))
        remark(f"{clean(run)}: {pull_run(place, run, root)}")
    for problem in runs.problems:
        remark(clean(problem))
    raise SystemExit(1 if runs.problems else 0)


@click.command()
@click.argument("run")
@click.argument("url", required=False)
@dir_option
@click.option(
    "--merge", is_flag=True, help="Also put small pieces together in the place, and delete what nothing names."
)
def sync(run: str, url: str | None, root: str, merge: bool) -> None:
    """Synchronise a run with its remote: upload what is missing there, download what is missing here.

    Nothing is deleted here. --merge also merges small pieces there and deletes those that no manifest names.

    \b
    Examples:
      rollbook sync last
      rollbook sync cartpole/ppo s3://bucket/lab --merge
    """
    from rollbook.ground.addresses import origin_of, run_and_place
    from rollbook.remote import open_place
    from rollbook.remote.merging import tidy
    from rollbook.remote.pull import pull as pull_run
    from rollbook.remote.push import push as push_folder

    folder = find_folder(run, root)
    remark(f"{clean(folder)}: {push_folder(folder, url)}")
    origin = origin_of(folder)
    assert origin is not None
    place, name = open_place(origin.url), run_and_place(folder)
    import os

    remark(f"{clean(name)}: {pull_run(place, name, os.path.dirname(os.path.dirname(folder)))}")
    if merge:
        remark(f"{clean(name)}: {tidy(place, name)}")


@click.command()
@click.argument("url")
@click.option("--rebuild", is_flag=True, help="Make it again from the runs themselves.")
def catalogue(url: str, rebuild: bool) -> None:
    """Say how many runs the catalogue of a remote knows and how old it is, or rebuild it from the runs.

    \b
    Examples:
      rollbook catalogue s3://bucket/lab
      rollbook catalogue s3://bucket/lab --rebuild
    """
    import time

    from rollbook.errors import PlaceAway
    from rollbook.remote.catalogue import read_catalogue
    from rollbook.remote.catalogue import rebuild as make_again
    from rollbook.remote.steps import Away, Unknown, said_of
    from rollbook.runs.remote import root_of

    place, _ = root_of(url)
    try:
        known = make_again(place) if rebuild else read_catalogue(place)
    except (Away, Unknown) as err:
        raise PlaceAway(said_of(err, place.url)) from None
    click.echo(f"{len(known.runs):,} runs, as of {max(0.0, time.time() - known.written):.0f} s ago")
    for problem in known.problems:
        remark(clean(problem))
