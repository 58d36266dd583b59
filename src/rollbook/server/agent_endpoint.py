"""The tools of `rollbook mcp` at /mcp of the page's server, about the runs that it shows.

Streamable HTTP of the Model Context Protocol without sessions and events: a request brings one call as JSON and gets
one answer as JSON. What it needs is loaded by the first request.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from rollbook.errors import MissingExtra
from rollbook.ground.optional import installed, need
from rollbook.runs.run_set import RunSet
from rollbook.server.answering import Workers, read_body, refusal
from rollbook.server.refusals import Refused
from rollbook.server.settings import AGENTS
from rollbook.server.shared_state import Hall

__all__ = ["AgentEndpoint"]

_LANES = {"sql": "question", "samples": "question", "wait": "wait"}
"""tool -> its workers; "agent" for the others. SQL of agents and of the page shares two of the query processes."""
_SPARE_SECONDS = 5.0
"""After its time a call is an error that the agent reads; so long after it, the request itself ends."""


class AgentEndpoint:
    """The ASGI app behind /mcp.

    Args:
      hall: the server's shared state.
      workers: lane -> the threads that answer.
    """

    def __init__(self, hall: Hall, workers: Mapping[str, Workers]) -> None:
        self._hall, self._workers = hall, workers
        self._server = functools.cache(self._make)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began = False

        async def noted(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self._answer(scope, receive, noted)
        except ClientDisconnect:
            return
        except Exception as err:
            if began:
                raise
            await refusal(err)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._hall.asked_at = time.monotonic()
        try:
            installed("mcp", extra="mcp", why=f"{AGENTS} of this server")
        except MissingExtra as err:
            raise Refused("not_found", str(err)) from None
        if scope["method"] != "POST":
            answer = refusal(Refused("bad_input", f"{AGENTS} takes POST alone: it has no sessions and no events"))
            answer.status_code, answer.headers["Allow"] = 405, "POST"
            await answer(scope, receive, send)
            return
        limits = self._hall.limits
        body = await read_body(Request(scope, receive), limits.body_bytes)
        server, manager_of = await anyio.to_thread.run_sync(self._server)
        unread = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return unread.pop() if unread else await receive()

        manager = manager_of(server, json_response=True, stateless=True)
        with anyio.move_on_after(limits.seconds + _SPARE_SECONDS) as bound:
            async with manager.run():  # one for each request: nothing is kept, and nothing is to be ended
                await manager.handle_request(scope, again, send)
        if bound.cancelled_caught:
            raise Refused("timeout", f"this took longer than {limits.seconds:g} s", "Ask for less.")

    def _make(self) -> tuple[Any, Callable[..., Any]]:
        """The protocol's server, and what handles one request for it. Takes a second: it loads the package."""
        from rollbook.server.agent_protocol import protocol_server
        from rollbook.server.agent_tools import AgentTools

        rooms = need("mcp.server.streamable_http_manager", extra="mcp", why=f"{AGENTS} of this server")
        tools = AgentTools(self._runs, longest_wait=self._hall.limits.seconds / 2)
        return protocol_server(tools, self._run), rooms.StreamableHTTPSessionManager

    def _run(self, name: str, call: Callable[[], str]) -> Awaitable[str]:
        return self._workers[_LANES.get(name, "agent")].run(call)

    def _runs(self) -> RunSet:
        shown = self._hall.catalogue.snapshot()
        return RunSet([row.about for row in shown.rows.values()], self._hall.title, shown.unreadable)
