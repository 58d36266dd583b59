"""The alerts of a run, the rules that found nothing, and the keys about its machine."""

from __future__ import annotations

import os

from rollbook.ground.files import read_json
from rollbook.health import DEFAULT, FALSE_ALARMS, summary
from rollbook.server.alerts import alerts_of
from rollbook.server.cells import plain
from rollbook.server.endpoint import Endpoint
from rollbook.server.keys import contents
from rollbook.server.rows import default_axis
from rollbook.server.schemas.health import HealthAnswer, QuietRule
from rollbook.server.schemas.runs import RunAsk
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS"]

_MOST_RULES = 100


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
    asked, looked = _asked(row.folder)
    spoke = {alert.rule for alert in alerts}
    quiet += [QuietRule(rule=name, label=_label(name), checked=looked) for name in asked if name not in spoke]
    return HealthAnswer(
        alerts=list(reversed(alerts)),
        quiet=quiet,
        rules=len(spoke) + len(quiet),
        promise=FALSE_ALARMS if asked and set(asked) <= set(DEFAULT) else None,
        host_keys=[plain(key) for key in held.keys if key.startswith("host/")],
    )


def _asked(folder: str) -> tuple[list[str], str]:
    """The rules that the keeper checks in a run, and how many rows they have read."""
    keeper = os.path.join(folder, "data", "keeper")
    specs = read_json(os.path.join(keeper, "plan.json")).get("rules")
    names = [spec.get("name") for spec in specs if isinstance(spec, dict)] if isinstance(specs, list) else []
    cursor = read_json(os.path.join(keeper, "rules.json")).get("cursor")
    lanes = [lanes for lanes in cursor.values() if isinstance(lanes, dict)] if isinstance(cursor, dict) else []
    rows = sum(seq for each in lanes for seq in each.values() if isinstance(seq, int))
    said = f"{rows:,} rows" if rows else "no row yet"
    return [plain(name[:100]) for name in names[:_MOST_RULES] if isinstance(name, str)], said


def _label(name: str) -> str:
    """The summary of a rollbook rule; for other rules the name: nothing that a run names is imported."""
    return summary(name) if name in DEFAULT else name


ENDPOINTS = [
    Endpoint("GET", "/api/runs/{run}/health", RunAsk, HealthAnswer, health, "The alerts of a run, and what is quiet")
]
