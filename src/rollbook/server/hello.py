"""What the page has to know before its first request."""

from __future__ import annotations

from rollbook.ground.version import __version__
from rollbook.server.cells import plain
from rollbook.server.colours import kept_colors
from rollbook.server.endpoint import Endpoint
from rollbook.server.schemas.runs import Hello, HelloAsk, Limits
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS", "hello"]


def hello(hall: Hall, _: HelloAsk) -> Hello:
    """What the page has to know first."""
    shot = hall.catalogue.snapshot()
    limits = hall.limits
    return Hello(
        version=__version__,
        server=hall.identity,
        title=hall.title,
        roots=[plain(root) for root in hall.catalogue.roots],
        runs=len(shot.rows),
        live=shot.live,
        writable=hall.settings.writable,
        edit_token=hall.settings.edit_token if hall.settings.writable else "",
        notebook=hall.settings.notebook,
        only=hall.only,
        limits=Limits(points=limits.points, rows=limits.rows, runs=limits.runs, series=limits.series),
        colors=kept_colors(list(shot.rows.values())),
    )


ENDPOINTS = [Endpoint("GET", "/api/hello", HelloAsk, Hello, hello, "What the page has to know first", lane="light")]
