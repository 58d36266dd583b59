"""A sequential test plan as plain data."""

from __future__ import annotations

import math
from typing import Any

from rollbook.compare.scores import Pair
from rollbook.stats import Study


def plan_data(study: Study) -> dict[str, Any]:
    """A plan, its interim looks, and the current verdicts, as plain data for JSON.

    Returns:
      arms, n_min, n_max, alpha, delta, floor, note; looks: the fields of `stats.Look` for each look and pair, oldest
      first; verdicts: for each pair `a`, `b`, outcome, better, n, look, difference, low, high, chance, more, sentence.
      Numbers that are not finite are None.
    """
    plan = study.plan
    verdicts = []
    for verdict in study.verdicts():
        a, b = verdict.pair
        numbers = {name: getattr(verdict, name) for name in ("difference", "low", "high", "chance")}
        verdicts.append(
            {
                "a": a, "b": b, "outcome": verdict.outcome, "better": verdict.better, "n": verdict.n,
                "look": verdict.look, "more": None if verdict.more is None else str(verdict.more),
                "sentence": Pair(a, b, math.nan, math.nan, None, verdict).sentence(),
                **{name: None if v is None or not math.isfinite(v) else float(v) for name, v in numbers.items()},
            }
        )  # fmt: skip
    return {
        "arms": list(plan.arms), "n_min": plan.n_min, "n_max": plan.n_max, "alpha": plan.alpha, "delta": plan.delta,
        "floor": plan.floor, "note": plan.note, "looks": [look.as_data() for look in study.looks], "verdicts": verdicts,
    }  # fmt: skip
