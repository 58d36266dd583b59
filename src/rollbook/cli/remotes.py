"""`rollbook push`, `rollbook pull`, `rollbook sync`: runs between this machine and a remote."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option, find_folder
from rollbook.cli.output import clean, json_option, print_json, remark
from rollbook.system.texts import amount


@click.command()
@click.argument("run")
@click.argument("url", required=False)
@dir_option
@click.option("--again", is_flag=True, help="Upload again even if the run was deleted there.")
@json_option
def push(run: str, url: str | None, root: str, again: bool, as_json: bool) -> None:
    """Upload a run to a remote, such as s3://bucket/prefix; what is there already is skipped.

    Interrupt and repeat it as you like. URL is needed once; a run that was started with remote= knows it.

    \b
    Examples:
      rollbook push last s3://bucket/lab
      rollbook push cartpole/ppo
    """
    from rollbook.remote.push import push as push_folder

    folder = find_folder(run, root)
    report = push_folder(folder, url, again=again)
    remark(f"{clean(folder)}: {report}")
    if as_json:
        print_json({"run": folder, **vars(report)})


@click.command()
@click.argument("url")
@dir_option
@json_option
def pull(url: str, root: str, as_json: bool) -> None:
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
    remote, _ = root_of(url)
    pulled = []
    for row in runs.rows():
        _, run = address_of(str(row["path"]))
        report = pull_run(remote, run, root)
        pulled.append({"run": run, **vars(report)})
        remark(f"{clean(run)}: {report}")
    for problem in runs.problems:
        remark(clean(problem))
    if as_json:
        print_json({"runs": pulled, "problems": [str(problem) for problem in runs.problems]})
    raise SystemExit(1 if runs.problems else 0)


@click.command()
@click.argument("run")
@click.argument("url", required=False)
@dir_option
@click.option(
    "--merge", is_flag=True, help="Also merge small pieces in the remote, and delete those that no manifest names."
)
@json_option
def sync(run: str, url: str | None, root: str, merge: bool, as_json: bool) -> None:
    """Synchronise a run with its remote: upload what is missing there, download what is missing here.

    Nothing is deleted here. --merge also merges small pieces there and deletes those that no manifest names.

    \b
    Examples:
      rollbook sync last
      rollbook sync cartpole/ppo s3://bucket/lab --merge
    """
    from rollbook.remote import open_remote
    from rollbook.remote.merging import tidy
    from rollbook.remote.pull import pull as pull_run
    from rollbook.remote.push import push as push_folder
    from rollbook.schema.addresses import origin_of, run_and_base

    folder = find_folder(run, root)
    up = push_folder(folder, url)
    remark(f"{clean(folder)}: {up}")
    origin = origin_of(folder)
    assert origin is not None
    remote, name = open_remote(origin.url), run_and_base(folder)
    import os

    down = pull_run(remote, name, os.path.dirname(os.path.dirname(folder)))
    remark(f"{clean(name)}: {down}")
    tidied = tidy(remote, name) if merge else None
    if tidied is not None:
        remark(f"{clean(name)}: {tidied}")
    if as_json:
        more = {} if tidied is None else vars(tidied)
        print_json({"up": {"run": folder, **vars(up)}, "down": {"run": name, **vars(down)}, "tidied": more})


@click.command()
@click.argument("url")
@click.option("--rebuild", is_flag=True, help="Rebuild it from the runs.")
@json_option
def catalogue(url: str, rebuild: bool, as_json: bool) -> None:
    """Show how many runs the catalogue of a remote knows and how old it is, or rebuild it from the runs.

    \b
    Examples:
      rollbook catalogue s3://bucket/lab
      rollbook catalogue s3://bucket/lab --rebuild
    """
    import time

    from rollbook.errors import RemoteUnreachable
    from rollbook.remote.catalogue import read_catalogue
    from rollbook.remote.catalogue import rebuild as make_again
    from rollbook.remote.steps import Away, Unknown, message_of
    from rollbook.runs.remote import root_of

    remote, _ = root_of(url)
    try:
        known = make_again(remote) if rebuild else read_catalogue(remote)
    except (Away, Unknown) as err:
        raise RemoteUnreachable(message_of(err, remote.url)) from None
    age = max(0.0, time.time() - known.written)
    if as_json:
        problems = [str(problem) for problem in known.problems]
        print_json({"runs": len(known.runs), "seconds_old": age, "problems": problems})
    else:
        click.echo(f"{amount(len(known.runs), 'run')}, as of {age:.0f} s ago")
    for problem in known.problems:
        remark(clean(problem))
