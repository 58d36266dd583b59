"""The alerts of a run, the rules that found nothing, and the keys about its machine."""

from __future__ import annotations

from rollbook.runs.checking import asked
from rollbook.server.alerts import alerts_of
from rollbook.server.cells import plain
from rollbook.server.endpoint import Endpoint
from rollbook.server.keys import contents
from rollbook.server.rows import default_axis
from rollbook.server.schemas.health import HealthAnswer, QuietRule
from rollbook.server.schemas.runs import RunAsk
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS"]


def health(hall: Hall, ask: RunAsk) -> HealthAnswer:
    """The alerts of a run, and the rules that found nothing."""
    row = hall.row(ask.run)
    alerts = alerts_of(hall, row, default_axis(hall, row))
    held = contents(hall, row)
    facts = hall.facts.now(row)
    bad = [key for key, value in facts.latest.items() if isinstance(value, float) and value - value != 0]
    quiet = []
    if not bad and facts.latest:
        quiet.append(
            QuietRule(rule="finite", label="The newest values are numbers", checked=f"{len(facts.latest)} keys")
        )
    episodes = held.tables.get("episodes", 0)
    if episodes and not any(alert.source == "auditor" for alert in alerts):
        quiet.append(
            QuietRule(rule="audit", label="Return said equals return counted", checked=f"{episodes:,} episodes")
        )
    rules, rows, promise = asked(row.folder)
    looked = f"{rows:,} rows" if rows else "no row yet"
    spoke = {alert.rule for alert in alerts}
    quiet += [
        QuietRule(rule=plain(name), label=plain(label), checked=looked)
        for name, label in rules.items()
        if name not in spoke
    ]
    return HealthAnswer(
        alerts=list(reversed(alerts)),
        quiet=quiet,
        rules=len(spoke) + len(quiet),
        promise=promise,
        host_keys=[plain(key) for key in held.keys if key.startswith("host/")],
    )


ENDPOINTS = [
    Endpoint("GET", "/api/runs/{run}/health", RunAsk, HealthAnswer, health, "The alerts of a run, and what is quiet")
]
