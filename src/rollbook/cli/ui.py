"""`rollbook ui`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click

from rollbook.cli.find import add_what_is_there, dir_option, find_runs
from rollbook.cli.output import clean
from rollbook.schema.addresses import is_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.server.serving import Listening
    from rollbook.server.settings import ServerSettings

_USUAL_PORT = 7655
_FEW = 20
_CHECKOUT = Path(__file__).resolve().parents[3]
"""The page's source folder, if rollbook runs from a checkout."""


@click.command()
@click.argument("roots", nargs=-1, metavar="[RUNS]...")
@dir_option
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Any but this machine's own needs a token.",
)
@click.option(
    "--port",
    default=None,
    type=click.IntRange(0, 65535),
    help=f"The port; 0 picks a free one.  [default: {_USUAL_PORT}, or a free one]",
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A further name of this machine, such as that of a proxy.",
)
@click.option("--read-only", is_flag=True, help="Nothing can be edited: no tags, notes, names, boards.")
@click.option(
    "--export", "folder", default=None, metavar="FOLDER", help="Write a copy that works from any file server."
)
def ui(
    roots: tuple[str, ...],
    root: str,
    host: str,
    port: int | None,
    no_open: bool,
    hosts: tuple[str, ...],
    read_only: bool,
    folder: str | None,
) -> None:
    """Look at runs in a browser, live.

    Without an argument: the runs below --dir. RUNS is a folder, a project, a name, an id, or "last". In a checkout of
    rollbook the page is built first, if that has not been done.

    \b
    Examples:
      rollbook ui
      rollbook ui last
      rollbook ui runs /scratch/old-runs --port 8000
      rollbook ui s3://bucket/prefix         runs in a remote, as they are now
      rollbook ui --export copy              a copy for any file server
      rollbook ui --host 0.0.0.0             prints an address for others
    """
    # Arrow's own pool keeps what was freed: 29 MiB over 50 live runs, where glibc's keeps 10 (docs/figures.md).
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    stores = [asked for asked in roots if is_address(asked)]
    found = [_folders(asked, root) for asked in roots or (root,)]
    served = tuple(one for folders in found for one in folders)
    is_ready = page_is_ready()
    title = ", ".join(roots) if stores else ""
    if folder is not None:
        _export(served, folder, title)
        return
    if not stores:
        for root_folder in served:
            _remark_if_empty(root_folder)
    from rollbook.server.serving import prepared
    from rollbook.server.settings import ServerSettings

    settings = prepared(
        ServerSettings(
            roots=served,
            host=host,
            port=_USUAL_PORT if port is None else port,
            hosts=frozenset(hosts),
            writable=not read_only and not stores,
            title=title,
        )
    )
    server = _server(settings, any_port=port is None)
    click.echo(f"rollbook shows {settings.title or ', '.join(settings.roots)} on {server.address}", err=True)
    if stores:
        click.echo("Runs of a remote are shown as they are now, and cannot be edited here.", err=True)
    if settings.token is not None:
        click.echo(
            "Whoever has this address can see these runs" + ("." if read_only else " and edit their tags and notes."),
            err=True,
        )
    try:
        click.echo("Ctrl-C ends it.", err=True)
        if is_ready and not no_open:
            open_browser(server.address)
        server.run()
    except KeyboardInterrupt:  # the way to leave
        click.echo(err=True)


def page_is_ready() -> bool:
    """Whether the page exists; in a checkout it is built. The terminal shows what is missing."""
    from rollbook.server.app import BuiltPage

    page = BuiltPage()
    if page.is_built:
        return True
    checkout = _CHECKOUT
    script = checkout / "scripts" / "build_page.py"
    if not (script.is_file() and (checkout / "dashboard" / "package.json").is_file()):
        click.echo(f"This installation of rollbook holds no page ({page.folder}). Install rollbook again.", err=True)
        return False
    click.echo("Building the page (once; some seconds) …", err=True)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    if done.returncode == 0 and page.is_built:
        return True
    click.echo("\n".join((done.stderr or done.stdout).strip().splitlines()[-5:]), err=True)
    command = "make page" if checkout == Path.cwd() else f"make -C {shlex.quote(str(checkout))} page"
    click.echo(f"The page is not built, so there is nothing to look at yet. Build it with: {command}", err=True)
    return False


def _remark_if_empty(folder: str) -> None:
    from rollbook.formats.foreign import found as found_of_others
    from rollbook.formats.opening import open as open_runs
    from rollbook.runs.catalog import found, stamped

    if not os.path.isdir(folder):
        click.echo(add_what_is_there(f"there is no folder {clean(folder)} yet", looks_here=True), err=True)
    elif (
        found(folder, _FEW) < _FEW
        and not found_of_others(folder, stamped(folder))
        and not len(runs := open_runs(folder))
    ):
        click.echo(add_what_is_there(f"there is no run below {clean(folder)} yet", runs), err=True)


def _export(roots: tuple[str, ...], folder: str, title: str) -> None:
    from rollbook.server.static_copy import export

    index = export(roots, folder, report=lambda text: click.echo(text, err=True), title=title)
    click.echo(f"{index} is a copy of the page. Look at it with: python -m http.server -d {folder}", err=True)


def _server(settings: ServerSettings, any_port: bool) -> Listening:
    """A server on the wanted port. If that port is taken and was only the default, on a free one."""
    from rollbook.errors import RollbookError
    from rollbook.server.serving import Listening

    try:
        return Listening(settings)
    except RollbookError:
        if not any_port:
            raise
        return Listening(replace(settings, port=0))


def _folders(asked: str, root: str) -> list[str]:
    """A folder of runs, the named run, or a store; of one run of a store its view in the cache."""
    if not is_address(asked):
        return _local_folders(asked, root)
    from rollbook.runs.catalog import open as open_runs

    runs = open_runs(asked)
    return [asked] if runs.as_of is not None else [str(runs[0].path)]


def _local_folders(asked: str, root: str) -> list[str]:
    """A folder of runs, or the named runs. A folder may be empty: runs appear when they are recorded."""
    if asked == root or (os.path.isdir(asked) and (os.sep in asked or asked in (os.curdir, os.pardir))):
        return [os.path.abspath(asked)]
    runs = find_runs(asked, root, may_be_none=True, newest=0)
    rows = runs.rows()
    from rollbook.formats.foreign import is_laid_out

    project = os.path.join(os.path.abspath(root), asked)
    if rows and all(row["project"] == asked and os.path.dirname(str(row["path"])) == project for row in rows):
        return [project]  # further runs of the project appear
    below = os.path.join(os.path.realpath(asked), "")
    if os.path.isdir(asked) and all(
        is_laid_out(str(row["path"])) or os.path.realpath(str(row["path"])).startswith(below) for row in rows
    ):
        return [os.path.abspath(asked)]  # further runs appear; runs of other tools are followed
    return [str(row["path"]) for row in rows] or [os.path.abspath(asked)]


def open_browser(address: str) -> None:
    """Open the page in a browser if there is a screen; never an error."""
    import webbrowser

    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER")
    ):
        return
    try:
        webbrowser.open(address)
    except Exception:  # whatever the browser's launcher does, the address is in the terminal
        return
