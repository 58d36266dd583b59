"""The page inside a notebook: a server in a background thread, and a frame that shows one run or many."""

from __future__ import annotations

import atexit
import html
import os
import shlex
import threading

from rollbook.server.serving import Listening, prepared
from rollbook.server.settings import Settings

__all__ = ["Shown", "show"]

_servers: dict[str, Listening] = {}
_lock = threading.Lock()


class Shown:
    """What a notebook draws: the page in a frame.

    Attributes:
      address: of the page, for a separate window.
      height: of the frame, in pixels.
      folder: what it shows; for readers of a saved notebook whose server has ended.
    """

    def __init__(self, address: str, height: int, folder: str) -> None:
        self.address, self.height, self.folder = address, height, folder

    def __repr__(self) -> str:
        return f"<page of rollbook on {self.address}>"

    def _repr_html_(self) -> str:
        address, folder = html.escape(self.address, quote=True), html.escape(shlex.quote(self.folder))
        return (
            f'<iframe src="{address}" width="100%" height="{int(self.height)}" style="border:0" '
            f'title="rollbook"></iframe><div><a href="{address}" target="_blank" rel="noopener">a window of its own'
            f"</a>; once this kernel has ended: <code>rollbook ui {folder}</code></div>"
        )


def show(path: str | os.PathLike[str], *, height: int = 640) -> Shown:
    """Show the page of a run, or of a folder of runs, in a notebook cell.

    The server is started once for each folder, on 127.0.0.1 and a free port, and ends with the process.

    Args:
      path: a run's folder, or a folder of runs.
      height: of the frame, in pixels.
    """
    folder = os.path.realpath(path)
    with _lock:
        server = _servers.get(folder)
        if server is None:
            server = Listening(prepared(Settings((folder,), notebook=True)))
            server.start()
            if not _servers:
                atexit.register(_stop_all)
            _servers[folder] = server
    return Shown(server.address, height, folder)


def _stop_all() -> None:
    for server in _servers.values():
        server.stop()
    _servers.clear()
