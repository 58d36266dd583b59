"""The app: every endpoint of the API, the page, and the guard in front of them."""

from __future__ import annotations

import functools
import gzip
import hashlib
import html
import os
from pathlib import Path

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from rollbook.server.agents import AgentEndpoint
from rollbook.server.answering import Guard, Workers, answer_with, refusal
from rollbook.server.live import Live
from rollbook.server.openapi import ENDPOINTS, document
from rollbook.server.runs.page_state import first_view
from rollbook.server.settings import AGENTS, ServerSettings
from rollbook.server.shared.shapes import Refused
from rollbook.server.shared.state import ServerContext

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
_LARGEST = 8 << 20
_MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>rollbook</title>
<h1>The page is not built</h1>
<p>The server runs and its API answers, but {folder} holds no page.</p>
<p>In a checkout of rollbook, build it with one command, then load this address again:</p>
<pre>make page</pre>
<p>An installed wheel holds the page; there, install rollbook again.</p>
"""


class _File:
    def __init__(self, body: bytes, media_type: str) -> None:
        self.body, self.media_type = body, media_type
        small = gzip.compress(body, 9, mtime=0)
        self.small = small if len(small) < 0.9 * len(body) else None
        self.tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


class BuiltPage:
    """The files of the page.

    Args:
      folder: their folder; None: inside the package.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(__file__).parent / "page"
        self._stamp: object = None
        self._files: dict[str, _File] = {}

    @property
    def is_built(self) -> bool:
        """Whether there is a page."""
        return (self.folder / "index.html").is_file()

    def answer(self, request: Request, opens_with: str = "") -> Response:
        """The file of that name; the index page for the root.

        Args:
          opens_with: what the page shows where its address says nothing, as words of an address.
        """
        self.load()
        name = request.path_params.get("name", "") or "index.html"
        file = self._files.get(name)
        if file is None:
            if name == "index.html":
                text = _MISSING.format(folder=html.escape(str(self.folder)))
                return Response(text, status_code=503, media_type="text/html")
            return Response("there is no such file", status_code=404, media_type="text/plain")
        if name == "index.html" and opens_with:
            file = _File(opening_with(file.body.decode(), opens_with).encode(), file.media_type)
        lasting = name.startswith("assets/")
        headers = {
            "ETag": file.tag,
            "Vary": "Accept-Encoding",
            "Cache-Control": "public, max-age=31536000, immutable" if lasting else "no-cache",
        }
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        body = file.body
        if file.small is not None and "gzip" in request.headers.get("accept-encoding", ""):
            body = file.small
            headers["Content-Encoding"] = "gzip"
        return Response(body, media_type=file.media_type, headers=headers)

    def load(self) -> None:
        """Read the files; again if the page was rebuilt."""
        try:
            stat = os.stat(self.folder / "index.html")
        except OSError:
            self._files, self._stamp = {}, None
            return
        stamp = (stat.st_mtime_ns, stat.st_ino)
        if stamp == self._stamp:
            return
        files: dict[str, _File] = {}
        for path in sorted(self.folder.rglob("*")):
            kind = _TYPES.get(path.suffix)
            if kind is None or not path.is_file() or path.is_symlink() or path.stat().st_size > _LARGEST:
                continue
            files[path.relative_to(self.folder).as_posix()] = _File(path.read_bytes(), kind)
        self._files, self._stamp = files, stamp


def opening_with(index: str, words: str) -> str:
    """The index page with what it shows where its address says nothing."""
    return index.replace('<meta name="rollbook" ', f'<meta name="rollbook" data-first="{html.escape(words)}" ', 1)


def make_app(settings: ServerSettings) -> Guard:
    """The whole server as an ASGI app. The app behind the guard (`.app`) has the shared state in `state.context`."""
    context = ServerContext(settings)
    limits = settings.limits
    at_work = {"light": 2, "work": limits.at_work, "question": limits.questions}
    at_work |= {"agent": limits.questions, "wait": limits.at_work}  # agents: what they ask delays no page
    workers = {lane: Workers(many, limits.waiting, limits.seconds) for lane, many in at_work.items()}
    page = BuiltPage(settings.page)

    @functools.cache
    def described_as() -> bytes:
        return msgspec.json.encode(document(ENDPOINTS))

    async def described(_: Request) -> Response:
        return Response(described_as(), media_type="application/json")

    async def shown(request: Request) -> Response:
        if request.path_params["name"] in ("", "index.html") and guard.lets_read(request.headers):
            words = await anyio.to_thread.run_sync(first_view, context)
            return page.answer(request, words)
        return page.answer(request)

    async def no_such(request: Request, _: Exception) -> Response:
        return refusal(Refused("not_found", f"there is no {request.method} {request.url.path!r:.100}"))

    live = Live(context)
    routes: list[BaseRoute] = [
        Route("/api/openapi.json", described, methods=["GET"]),
        WebSocketRoute("/api/live", live.serve),
        Route(AGENTS, AgentEndpoint(context, workers)),
    ]
    for endpoint in ENDPOINTS:
        routes.append(
            Route(endpoint.path, answer_with(endpoint, context, workers[endpoint.lane]), methods=[endpoint.method])
        )
    routes.append(Route("/api/{rest:path}", _nothing, methods=["GET", "POST", "PUT", "DELETE", "PATCH"]))
    routes.append(Route("/{name:path}", shown, methods=["GET"]))
    app = Starlette(routes=routes, exception_handlers={404: no_such, 405: no_such})
    app.state.context, app.state.live, app.state.page = context, live, page
    guard = Guard(app, settings)
    return guard


async def _nothing(request: Request) -> Response:
    return refusal(Refused("not_found", f"there is no {request.method} {request.url.path!r:.100}"))
