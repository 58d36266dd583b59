"""The colours of runs and groups, as `runs.colours` keeps them."""

from __future__ import annotations

from collections.abc import Sequence

from rollbook.runs.colours import keep
from rollbook.server.catalogue import RunRow
from rollbook.server.endpoint import Endpoint
from rollbook.server.refusals import Refused
from rollbook.server.schemas.runs import ColorsAnswer, ColorsAsk
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS", "kept_colors"]


def kept_colors(rows: Sequence[RunRow]) -> dict[str, list[int]]:
    """Run -> [its colour alone, in a group], of those that have one."""
    known = keep([row.about for row in rows])
    return {row.key: [*known[row.about["id"]]] for row in rows if row.about["id"] in known}


def keep_colors(hall: Hall, ask: ColorsAsk) -> ColorsAnswer:
    """Keep the colours of some runs."""
    rows = hall.rows([*ask.alone, *ask.grouped])
    alone, grouped = (
        {str(row.about["id"]): colors[row.key] for row in rows if row.key in colors}
        for colors in (ask.alone, ask.grouped)
    )
    try:
        keep([row.about for row in rows], alone, grouped, chosen=ask.chosen)
    except OSError as err:
        raise Refused("unreadable", f"the colours cannot be kept: {err.strerror or err}") from None
    return ColorsAnswer(colors=kept_colors(rows))


ENDPOINTS = [
    Endpoint("PUT", "/api/colors", ColorsAsk, ColorsAnswer, keep_colors, "Keep the colours of some runs", edits=True)
]
