"""Looks and verdicts as plain data."""

from __future__ import annotations

from typing import Any

from rollbook.stats import Study


def plan_data(study: Study) -> dict[str, Any]:
    """A plan, its looks, and the verdicts of the last one, as plain data for JSON.

    Args:
      study: the plan with its looks.
    Returns:
      arms, seeds (of each group at the end; None: no end is planned), first_look (the fewest seeds of each that can
      decide), alpha, delta, floor, against, paired, note; looks: the fields of `stats.Look` for each look and pair,
      oldest first; verdicts: the fields of `stats.Verdict` and its sentence, for each pair.
    """
    plan = study.plan
    pairs = max(len(plan.pairs(plan.arms)), 1)
    return {
        "arms": list(plan.arms),
        "seeds": plan.seeds,
        "first_look": plan.first_look(pairs),
        "alpha": plan.alpha,
        "delta": plan.delta,
        "floor": plan.floor,
        "against": plan.against,
        "paired": plan.paired,
        "note": plan.note,
        "looks": study.as_data()["looks"],
        "verdicts": [verdict.as_data() for verdict in study.verdicts],
    }
