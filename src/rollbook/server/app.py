"""The app: every endpoint of the API, the page, and the guard in front of them."""

from __future__ import annotations

import functools

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from rollbook.server.agent_endpoint import AgentEndpoint
from rollbook.server.answering import Workers, answer_with, refusal
from rollbook.server.built_page import BuiltPage
from rollbook.server.guard import Guard
from rollbook.server.live import Live
from rollbook.server.openapi import document
from rollbook.server.refusals import Refused
from rollbook.server.routes import ENDPOINTS
from rollbook.server.settings import AGENTS, Settings
from rollbook.server.shared_state import Hall

__all__ = ["make_app"]


def make_app(settings: Settings) -> Guard:
    """The whole server as an ASGI app. The app behind the guard (`.app`) has the shared state in `state.hall`."""
    hall = Hall(settings)
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
        return page.answer(request)

    async def no_such(request: Request, _: Exception) -> Response:
        return refusal(Refused("not_found", f"there is no {request.method} {request.url.path!r:.100}"))

    live = Live(hall)
    routes: list[BaseRoute] = [
        Route("/api/openapi.json", described, methods=["GET"]),
        WebSocketRoute("/api/live", live.serve),
        Route(AGENTS, AgentEndpoint(hall, workers)),
    ]
    for endpoint in ENDPOINTS:
        routes.append(
            Route(endpoint.path, answer_with(endpoint, hall, workers[endpoint.lane]), methods=[endpoint.method])
        )
    routes.append(Route("/api/{rest:path}", _nothing, methods=["GET", "POST", "PUT", "DELETE", "PATCH"]))
    routes.append(Route("/{name:path}", shown, methods=["GET"]))
    app = Starlette(routes=routes, exception_handlers={404: no_such, 405: no_such})
    app.state.hall, app.state.live, app.state.page = hall, live, page
    return Guard(app, settings)


async def _nothing(request: Request) -> Response:
    return refusal(Refused("not_found", f"there is no {request.method} {request.url.path!r:.100}"))
