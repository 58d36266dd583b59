"""`rollbook ui`."""

from __future__ import annotations

import os
from dataclasses import replace

import click

from rollbook.cli.find import dir_option, find_folder
from rollbook.remote import is_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.server.serving import Listening
    from rollbook.server.settings import Settings

_USUAL_PORT = 7655


@click.command()
@click.argument("roots", nargs=-1, metavar="[DIR|RUN]...")
@dir_option
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen. Any address but this machine's own needs a token.",
)
@click.option(
    "--port",
    default=None,
    type=click.IntRange(0, 65535),
    help=f"Which port; 0 takes a free one.  [default: {_USUAL_PORT}, or a free one]",
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
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
    no_browser: bool,
    hosts: tuple[str, ...],
    read_only: bool,
    folder: str | None,
) -> None:
    """Look at runs in a browser, live.

    Without an argument: the runs below --dir. RUN is a run's folder, its id, project/name, or "last".

    \b
    Examples:
      rollbook ui
      rollbook ui last
      rollbook ui runs /scratch/old-runs --port 8000
      rollbook ui s3://bucket/prefix         runs in a store, as they lie there now
      rollbook ui --export copy              a copy for any file server
      rollbook ui --host 0.0.0.0             prints an address with a token, for other machines
    """
    stores = [asked for asked in roots if is_address(asked)]
    places = tuple(place for asked in roots or (root,) for place in _folders(asked, root))
    if folder is not None:
        _export(places, folder)
        return
    from rollbook.server.serving import prepared
    from rollbook.server.settings import Settings

    settings = prepared(
        Settings(
            roots=places,
            host=host,
            port=_USUAL_PORT if port is None else port,
            hosts=frozenset(hosts),
            writable=not read_only and not stores,
            title=", ".join(stores),
        )
    )
    server = _server(settings, anew=port is None)
    click.echo(f"rollbook shows {settings.title or ', '.join(settings.roots)} on {server.address}", err=True)
    if stores:
        click.echo("Runs of a store are shown as they lie there now, and cannot be edited here.", err=True)
    if settings.token is not None:
        click.echo(
            "Whoever has this address can see these runs" + ("." if read_only else " and edit their tags and notes."),
            err=True,
        )
    click.echo("Ctrl-C ends it.", err=True)
    if not no_browser:
        open_browser(server.address)
    server.run()


def _export(places: tuple[str, ...], folder: str) -> None:
    from rollbook.server.static_copy import export

    index = export(places, folder, said=lambda text: click.echo(text, err=True))
    click.echo(f"{index} is a copy of the page. Look at it with: python -m http.server -d {folder}", err=True)


def _server(settings: Settings, anew: bool) -> Listening:
    """A server on the wanted port, or, where nobody asked for that port and it is taken, on a free one."""
    from rollbook.errors import RollbookError
    from rollbook.server.serving import Listening

    try:
        return Listening(settings)
    except RollbookError:
        if not anew:
            raise
        return Listening(replace(settings, port=0))


_MOST_OF_A_STORE = 200


def _folders(asked: str, root: str) -> list[str]:
    """A folder of runs, the run that is named, or the newest runs of a store, laid into the cache."""
    if not is_address(asked):
        return [_folder(asked, root)]
    from rollbook.runs.catalog import open as open_runs

    runs = open_runs(asked)
    newest = sorted(runs.rows(), key=lambda row: row["created"] or 0.0, reverse=True)
    if len(newest) > _MOST_OF_A_STORE:
        click.echo(f"{asked} holds {len(newest)} runs; the newest {_MOST_OF_A_STORE} are shown", err=True)
    return [str(runs.one(str(row["id"])).path) for row in newest[:_MOST_OF_A_STORE]]


def _folder(asked: str, root: str) -> str:
    """A folder of runs, or the run that is named."""
    if os.path.isdir(asked) or asked == root:  # where nothing has been recorded yet, the page fills when something is
        return os.path.abspath(asked)
    return find_folder(asked, root)


def open_browser(address: str) -> None:
    """Open the page where there is a screen; never an error."""
    import sys
    import webbrowser

    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER")
    ):
        return
    try:
        webbrowser.open(address)
    except Exception:  # whatever a browser's launcher does, the address stands in the terminal
        return
