"""From a request to its endpoint and back: who may ask, how it is parsed, and the bounded threads that work on it.

It checks the Host (a name that DNS rebinding points to this machine is refused), the origin of the request (no other
site, neither by request nor by socket), and, on any address except loopback, the token. Every answer has headers that
let a browser execute only the page's own script.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import os
import re
import socket
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from typing import TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import anyio
import msgspec
import numpy as np
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rollbook.server.settings import AGENTS, ServerSettings
from rollbook.server.shared.endpoint import Download, Endpoint, Streamed
from rollbook.server.shared.shapes import STATUS, Answer, Refused, body_of, words_of
from rollbook.server.shared.state import ServerContext
from rollbook.system.daemon_threads import DaemonThreads

log = logging.getLogger("rollbook.server")

EDIT_HEADER = "x-rollbook-edit"

MOST_GIVEN_UP = 8
"""How many answers of one kind may still be computed after their requests have gone."""

Given = TypeVar("Given")


class Workers:
    """Threads that answer: a limited number at work, a limited number waiting.

    An answer that takes too long is given up, but its thread cannot be ended. Others take its place, up to
    `MOST_GIVEN_UP` of them: a file system that hangs holds up the page no longer, and threads do not pile up.

    Args:
      at_work, waiting: the limits.
      seconds: how long one answer may take before the client gets an error.
    """

    def __init__(self, at_work: int, waiting: int, seconds: float) -> None:
        self._at_work, self._most_waiting, self._seconds = at_work, waiting, seconds
        self._threads = DaemonThreads(at_work + MOST_GIVEN_UP, "rollbook-answer")
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, work: Callable[[], Given], gone: Callable[[], Awaitable[bool]] | None = None) -> Given:
        """The result of `work`, from a thread.

        Args:
          gone: whether nobody waits for it any more; then it is not begun.
        Raises:
          Refused: too many wait already, or it took too long.
          ClientDisconnect: `gone` said so.
        """
        limiter = self._limiter = self._limiter or anyio.CapacityLimiter(self._at_work)
        if limiter.statistics().tasks_waiting >= self._most_waiting:
            raise Refused("too_many", f"{self._most_waiting} requests are waiting already", "Ask again in a moment.")
        with anyio.move_on_after(self._seconds):
            async with limiter:
                if gone is not None and await gone():
                    raise ClientDisconnect
                return await asyncio.wrap_future(self._threads.submit(work))
        raise Refused("timeout", f"this took longer than {self._seconds:g} s", "Ask for a smaller range or fewer runs.")


def answer_with(
    endpoint: Endpoint, context: ServerContext, workers: Workers
) -> Callable[[Request], Awaitable[Response]]:
    """The Starlette endpoint for one of our endpoints."""

    async def answer(request: Request) -> Response:
        began = time.perf_counter()
        context.asked_at = time.monotonic()
        try:
            ask = await _asked(endpoint, request, context)
            # A browser goes on while somebody zooms or types; what it has saved is saved all the same.
            gone = None if endpoint.edits else request.is_disconnected
            result = await workers.run(lambda: endpoint.work(context, ask), gone)
            if isinstance(result, Streamed):
                zipped = result.many and "gzip" in request.headers.get("accept-encoding", "")
                return _streamed(result, workers, zipped)
            if isinstance(result, Download):
                return _download(result)
            if isinstance(result, Answer):
                result.took_ms = round((time.perf_counter() - began) * 1e3, 1)
            return Response(plain_json(result), media_type="application/json")
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as err:
            return refusal(err)

    return answer


def plain_json(answer: object) -> bytes:
    """An answer as JSON."""
    return _encoder.encode(answer)


def _of_numpy(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be part of an answer")


_encoder = msgspec.json.Encoder(enc_hook=_of_numpy)


def refusal(err: BaseException) -> Response:
    """The answer to a request that failed."""
    words = words_of(err)
    if words.code == "failed":
        log.error("a request failed", exc_info=err)
    headers = {"Retry-After": "1"} if words.code == "too_many" else None
    body = msgspec.json.encode(body_of(words))
    return Response(body, status_code=STATUS.get(words.code, 500), media_type="application/json", headers=headers)


async def _asked(endpoint: Endpoint, request: Request, context: ServerContext) -> object:
    fields_given: dict[str, object] = {}
    if endpoint.edits:
        _may_edit(request, context)
    if endpoint.method in ("GET", "DELETE"):
        lists = _list_fields(endpoint.ask)
        for name in request.query_params:
            values = request.query_params.getlist(name)
            if name not in lists and len(values) > 1:
                raise Refused("bad_input", f"{name!r:.60} is given {len(values)} times in the address.", "Give it once")
            fields_given[str(name)] = values if name in lists else values[0]
    else:
        body = await read_body(request, context.limits.board_bytes if endpoint.large else context.limits.body_bytes)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refused(
                "bad_input", f"the body has the type {kind or 'none'!r:.60}", "Send JSON as application/json."
            )
        try:
            fields = msgspec.json.decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError) as err:
            raise Refused("bad_input", f"the body must be JSON: {err}") from None
        if not isinstance(fields, dict):
            raise Refused("bad_input", "the body must be a JSON object")
        fields_given.update(fields)
    for name in endpoint.path_names:
        if name in fields_given:
            raise Refused("bad_input", f"{name!r} belongs in the path, not in the query or body")
        fields_given[name] = request.path_params[name]
    try:
        return msgspec.convert(fields_given, endpoint.ask, strict=endpoint.method not in ("GET", "DELETE"))
    except (msgspec.ValidationError, ValueError, OverflowError) as err:
        raise Refused(
            "bad_input", f"{endpoint.method} {endpoint.path}: {err}", "api/openapi.json says what may be asked."
        ) from None


def _may_edit(request: Request, context: ServerContext) -> None:
    """Only our own page knows the edit token: other sites can send a request, but cannot read the token."""
    if not context.settings.writable:
        raise Refused("forbidden", "this server was started to show, not to edit", "Start it without --read-only.")
    token = request.headers.get(EDIT_HEADER, "")
    if not hmac.compare_digest(token.encode(), context.settings.edit_token.encode()):
        raise Refused(
            "forbidden", "a change needs the edit token", f"GET api/hello tells it; send it as {EDIT_HEADER}."
        )


def _list_fields(kind: type[msgspec.Struct]) -> set[str]:
    names = set()
    for entry in msgspec.structs.fields(kind):
        if getattr(entry.type, "__origin__", entry.type) is list:
            names.add(entry.encode_name)
    return names


async def read_body(request: Request, most: int) -> bytes:
    """The body of a request.

    Raises:
      Refused: it has more than `most` bytes; the rest is not read.
    """
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise Refused("too_large", f"the body has {int(length):,} bytes; at most {most:,}")
    received = bytearray()
    async for piece in request.stream():
        received += piece
        if len(received) > most:
            raise Refused("too_large", f"the body has more than {most:,} bytes")
    return bytes(received)


def _streamed(result: Streamed, workers: Workers, zipped: bool) -> Response:
    source = iter(result.pieces)
    packer = zlib.compressobj(1, wbits=31)  # 31: as gzip

    def next_piece() -> bytes | None:
        piece = next(source, None)
        if piece is None or not zipped:
            return piece
        return packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)  # so that each piece can be shown as it comes

    async def pieces() -> AsyncIterator[bytes]:
        while (piece := await workers.run(next_piece)) is not None:
            yield piece
        if zipped:
            yield packer.flush()

    headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"} if zipped else {}
    if result.filename is not None:
        headers["Content-Disposition"] = attachment(result.filename)
    return StreamingResponse(pieces(), media_type=result.media_type, headers=headers)


def _download(result: Download) -> Response:
    headers = {"Content-Disposition": attachment(os.path.basename(result.path))} if result.attachment else {}
    return FileResponse(result.path, media_type=result.media_type, headers=headers)


def attachment(name: str) -> str:
    """The header that makes a browser save a file and never show it."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name) or "file"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"


_COOKIE = "rollbook_token"
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?")
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class Guard:
    """ASGI middleware around the whole app.

    Args:
      app: the app behind it.
      settings: how the server was started.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app, self._settings = app, settings
        own = {settings.host.strip("[]").lower(), *(name.lower() for name in settings.hosts)}
        if settings.token is not None:
            own |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self._hosts = _LOCAL | own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check(scope, headers)
        except Refused as err:
            await self._refuse(err, scope, receive, send)
            return
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
            return
        moved = self._signed_in(scope)
        if moved is not None:
            await moved(scope, receive, self._dressed(scope, send))
            return
        await self.app(scope, receive, self._dressed(scope, send))

    def _check(self, scope: Scope, headers: Headers) -> None:
        host = self._host(headers)
        path = scope["path"]
        is_page = scope["type"] == "http" and path in ("/", "/index.html") and scope["method"] in ("GET", "HEAD")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host:
            raise Refused("forbidden", f"the request comes from {origin!r:.100}, which is another site")
        fetched = headers.get("sec-fetch-site", "none")
        if fetched not in ("none", "same-origin") and not (is_page and headers.get("sec-fetch-mode") == "navigate"):
            raise Refused("forbidden", "the request comes from a page of another site")
        if not self.lets_read(headers) and not self._brings_token(scope):
            if is_page or path.startswith(
                "/assets/"
            ):  # the page holds no secret: it only reports that it needs the token
                return
            raise Refused(
                "no_token",
                "this page needs its token",
                "The server printed an address with it in its terminal; open that once.",
            )

    def _host(self, headers: Headers) -> str:
        host = headers.get("host", "").lower()
        match = _HOST.fullmatch(host)
        name = match["name"].strip("[]") if match else ""
        if not match or not (name in self._hosts or (self._settings.token is not None and _is_address(name))):
            raise Refused(
                "forbidden",
                f"the server was asked for as {host!r:.100}, which is not its name",
                "Use the printed address, or start it with --allow-host NAME.",
            )
        return host

    def lets_read(self, headers: Headers) -> bool:
        """Whether a request may see what is in the runs: the server wants no token, or the request has it."""
        return self._settings.token is None or self._has_token(headers)

    def _has_token(self, headers: Headers) -> bool:
        token = self._settings.token or ""
        bearer = headers.get("authorization", "")
        if bearer.startswith("Bearer ") and _same(bearer[7:], token):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(_COOKIE)
        except CookieError:
            return False
        return cookie is not None and _same(cookie.value, token)

    def _brings_token(self, scope: Scope) -> bool:
        """Whether the token is in the address; only the address of the page itself may have it."""
        if scope["type"] != "http" or scope["path"] != "/":
            return False
        given = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"))).get("token", "")
        return _same(given, self._settings.token or "")

    def _signed_in(self, scope: Scope) -> Response | None:
        """The answer to the address with the token: a cookie, and a redirect to the address without it."""
        if self._settings.token is None or not self._brings_token(scope):
            return None
        rest = [(n, v) for n, v in parse_qsl(scope.get("query_string", b"").decode("latin-1")) if n != "token"]
        response = Response(status_code=303, headers={"Location": "./" + ("?" + urlencode(rest) if rest else "")})
        response.set_cookie(
            _COOKIE, self._settings.token, httponly=True, samesite="strict", max_age=30 * 86_400, path="/"
        )
        return response

    async def _refuse(self, err: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            if err.code == "no_token":  # a browser sees a code only after the socket was accepted
                await send({"type": "websocket.accept"})
                await send({"type": "websocket.close", "code": 4401, "reason": "token needed"})
            else:
                await send({"type": "websocket.close", "code": 1008, "reason": "refused"})
            return
        await refusal(err)(scope, receive, self._dressed(scope, send))

    def _dressed(self, scope: Scope, send: Send) -> Send:
        is_api = scope["path"].startswith(("/api/", AGENTS))
        policy = content_policy(self._settings.notebook, scope["path"])

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "no-referrer"
                headers["Cross-Origin-Resource-Policy"] = "same-origin"
                headers["Cross-Origin-Opener-Policy"] = "same-origin"
                headers["Content-Security-Policy"] = policy
                if not self._settings.notebook:
                    headers["X-Frame-Options"] = "DENY"
                if is_api:
                    headers["Cache-Control"] = "no-store"
            await send(message)

        return dressed


def content_policy(notebook: bool, path: str = "/") -> str:
    """What a browser may load and run: only our own files. Nothing that is in a run is executed."""
    if path.startswith(("/media/", "/files/", "/api/", AGENTS)):
        return "default-src 'none'; sandbox; frame-ancestors 'none'"
    around = "'self' http://localhost:* http://127.0.0.1:*" if notebook else "'none'"
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; "
        "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
        f"form-action 'none'; frame-ancestors {around}"
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())
