"""Access control: the check in front of every request and socket.

It checks the Host (a name that DNS rebinding points to this machine is refused), the origin of the request (no other
site, neither by request nor by socket), and, on any address except loopback, the token. Every answer has headers that
let a browser execute only the page's own script.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rollbook.server.answering import refusal
from rollbook.server.refusals import Refused
from rollbook.server.settings import AGENTS, Settings

__all__ = ["Guard", "content_policy"]

_COOKIE = "rollbook_token"
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?")
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class Guard:
    """ASGI middleware around the whole app.

    Args:
      app: the app behind it.
      settings: how the server was started.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
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
        if self._settings.token is None:
            return
        if not self._has_token(headers) and not self._brings_token(scope):
            if is_page or path.startswith(
                "/assets/"
            ):  # the page holds no secret: it only reports that it needs the token
                return
            raise Refused(
                "no_token",
                "this page needs its token",
                "It stands in the terminal of the server; open that address once.",
            )

    def _host(self, headers: Headers) -> str:
        said = headers.get("host", "").lower()
        match = _HOST.fullmatch(said)
        name = match["name"].strip("[]") if match else ""
        if not match or not (name in self._hosts or (self._settings.token is not None and _is_address(name))):
            raise Refused(
                "forbidden",
                f"the server was asked for as {said!r:.100}, which is not its name",
                "Use the printed address, or start it with --allow-host NAME.",
            )
        return said

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
        said = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"))).get("token", "")
        return _same(said, self._settings.token or "")

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


def _same(said: str, token: str) -> bool:
    return hmac.compare_digest(said.encode(), token.encode())
