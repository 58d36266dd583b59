"""A server that listens: in this thread for `rollbook ui`, in the background for the demo, in a frame for notebooks."""

from __future__ import annotations

import atexit
import contextlib
import html
import importlib
import logging
import os
import secrets
import shlex
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import uvicorn

from rollbook.errors import RollbookError
from rollbook.server.app import BuiltPage, make_app
from rollbook.server.settings import ServerSettings, is_loopback
from rollbook.server.shared.rows import contents
from rollbook.server.shared.sql import end_idle, warm
from rollbook.server.shared.state import ServerContext

_FIRST = 20
"""This many of the newest runs are opened while the browser starts: the first picture mostly shows them."""
_WARM_AFTER, _WARM_AT_LAST = 4.0, 30.0
"""When background loading begins, in seconds: after the last request, and at the latest after the start."""
_GROUPS = ("rollbook.compare.drawing_curves", "rollbook.compare.comparing", "numpy.ma")
"""What the curve of a first group needs (numpy.unique loads numpy.ma); the first page shows one if two of the newest
runs have one name."""
_WARMED = (*_GROUPS, "pyarrow.compute", "duckdb")
"""What the first table and the first search also need: together a second or two to load."""
_ARENA_MAX = -8
"""M_ARENA_MAX in glibc's malloc.h."""


def prepared(settings: ServerSettings) -> ServerSettings:
    """The settings, with a token if the address can be reached from other machines."""
    if settings.token is None and not is_loopback(settings.host):
        return replace(settings, token=secrets.token_urlsafe(24))
    return settings


def address_of(settings: ServerSettings) -> str:
    """The address to open in a browser."""
    host = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(settings.host, settings.host)
    host = f"[{host}]" if ":" in host else host
    token = f"?token={quote(settings.token)}" if settings.token is not None else ""
    return f"http://{host}:{settings.port}/{token}"


class Listening:
    """A server whose socket is open.

    Attributes:
      settings: with the actual port.
      address: to open in a browser.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._socket = bound(settings.host, settings.port)
        self.settings = replace(settings, port=int(self._socket.getsockname()[1]))
        app = make_app(self.settings)
        self._context: ServerContext = app.app.state.context  # type: ignore[attr-defined]
        self._page: BuiltPage = app.app.state.page  # type: ignore[attr-defined]
        config = uvicorn.Config(
            app,
            log_level=logging.WARNING,
            access_log=False,
            server_header=False,
            ws="websockets-sansio" if _knows_sansio() else "auto",
            ws_max_size=64 * 1024,
            ws_ping_interval=20.0,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=1,
            lifespan="on",
            proxy_headers=False,
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    @property
    def address(self) -> str:
        """The address to open in a browser, token included."""
        return address_of(self.settings)

    def run(self) -> None:
        """Serve until Ctrl-C."""
        _share_memory()
        _warm(self._context, self._page, self._ended)
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self._ended.set()
            end_idle()

    def start(self) -> None:
        """Serve in a background thread; returns when it answers."""
        ready = threading.Event()
        server = self._server
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]

        def work() -> None:
            import asyncio

            async def serve() -> None:
                task = asyncio.ensure_future(server._serve(sockets=[self._socket]))
                while not server.started and not task.done():
                    await asyncio.sleep(0.01)
                ready.set()
                await task

            try:
                asyncio.run(serve())
            finally:
                ready.set()
                self._socket.close()

        self._thread = threading.Thread(target=work, name="rollbook-page", daemon=True)
        self._thread.start()
        _warm(self._context, self._page, self._ended)
        ready.wait(20)
        if not server.started:
            raise RollbookError(f"the page could not be served on {self.address}")

    def wait(self) -> None:
        """Wait until Ctrl-C; for a server that `start` began."""
        try:
            while self._thread is not None and self._thread.is_alive():
                self._thread.join(1.0)
        except KeyboardInterrupt:
            return

    def stop(self) -> None:
        """End a server that `start` began, and the processes that waited for questions."""
        self._server.should_exit = True
        self._ended.set()
        if self._thread is not None:
            self._thread.join(10)
        end_idle()


def _share_memory() -> None:
    """Let threads share two memory pools instead of one each, so that freed memory is used again (glibc)."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


def _warm(context: ServerContext, page: BuiltPage, ended: threading.Event) -> None:
    """Prepare what the browser requests first, while it starts; then load in the background what later answers need.

    The second part waits until the first picture is done: both need the interpreter.
    """

    def first() -> None:
        with contextlib.suppress(ImportError):
            importlib.import_module("anyio._backends._asyncio")  # anyio loads it in the first request
        page.load()
        rows = context.catalogue.snapshot(5.0).rows.values()
        newest = sorted(rows, key=lambda row: row.about.get("created") or 0, reverse=True)[:_FIRST]
        for row in newest:
            with contextlib.suppress(RollbookError, OSError):
                context.facts.now(row)
                contents(context, row)
        if len({(row.about.get("project"), row.about.get("name")) for row in newest}) < len(newest):
            for name in _GROUPS:
                importlib.import_module(name)

    def rest() -> None:
        until = time.monotonic() + _WARM_AT_LAST
        while (left := min(until, context.asked_at + _WARM_AFTER) - time.monotonic()) > 0:
            if ended.wait(left):
                return
        for name in _WARMED:
            importlib.import_module(name)
        with contextlib.suppress(RollbookError, OSError):
            warm()
        if ended.is_set():
            end_idle()

    for work in (first, rest):
        threading.Thread(target=work, name=f"rollbook-warm-{work.__name__}", daemon=True).start()


@contextlib.contextmanager
def listen(settings: ServerSettings) -> Iterator[Listening]:
    """A server in a background thread, for the duration of the block."""
    server = Listening(prepared(settings))
    server.start()
    try:
        yield server
    finally:
        server.stop()


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there.

    Raises:
      RollbookError: the port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only of a socket whose protocol is named, asyncio turns Nagle's algorithm off. It would hold back the body of each
    # answer until the browser acknowledges the head: 40 ms.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host.strip("[]"), port))
    except OSError as err:
        sock.close()
        raise RollbookError(
            f"the page cannot listen on {host}:{port}: {err.strerror or err}.",
            "Choose another --port; 0 takes a free one",
        ) from None
    sock.listen(128)
    sock.set_inheritable(False)
    return sock


def _knows_sansio() -> bool:
    from uvicorn.config import WS_PROTOCOLS

    return "websockets-sansio" in WS_PROTOCOLS


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
        address, later = html.escape(self.address, quote=True), html.escape(f"rollbook ui {shlex.quote(self.folder)}")
        return (
            f'<iframe src="{address}" width="100%" height="{int(self.height)}" style="border:0" '
            f'title="rollbook"></iframe><div><a href="{address}" target="_blank" rel="noopener">a window of its own'
            f"</a>; once this kernel has ended: <code>{later}</code></div>"
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
            server = Listening(prepared(ServerSettings((folder,), notebook=True)))
            server.start()
            if not _servers:
                atexit.register(_stop_all)
            _servers[folder] = server
    return Shown(server.address, height, folder)


def _stop_all() -> None:
    for server in _servers.values():
        server.stop()
    _servers.clear()
