"""Rewards that are sums of parts: runs whose parts differ are not compared by the sum."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rollbook.book import Book
from rollbook.errors import BadInput

_PART = re.compile(r"(?P<before>(?:.*/|eval_)?)rewards/(?P<part>.+?)(?P<after>/mean)?$")
"""A metric of one part of the reward, as TRL names it."""
_TOTALS = ("reward", "return")


def on_one_scale(rows: Sequence[Mapping[str, Any]], metric: str) -> tuple[str, list[str]]:
    """A metric that means the same in all runs, and why it is another one than was asked for.

    Args:
      rows: the runs.
      metric: a key or a canonical name. Only whole rewards have parts.
    Returns:
      The metric of a part of the reward that all runs have, with a sentence about it; or the metric as it was given.
    Raises:
      BadInput: the rewards are made of different parts and have none in common.
    """
    if not metric.replace("_", "/").rsplit("/", 1)[-1].endswith(_TOTALS) or len(rows) < 2:
        return metric, []
    made_of: dict[str, tuple[dict[str, str], object]] = {}
    for row in rows:
        book = Book(str(row["path"]))
        keys = book.keys()
        prefix = "eval_" if "eval" in re.split("[/_]", metric) else ""
        found = [match for match in map(_PART.fullmatch, keys) if match]
        parts = {match["part"]: match[0] for match in found if match["before"] == prefix and _is_mean(match, keys)}
        parts |= {name: "" for name in book.reward_parts() if name not in parts}
        config = row.get("config")
        made_of[str(row["path"])] = (parts, config.get("reward_weights") if isinstance(config, Mapping) else None)
    with_parts = [(parts, weights) for parts, weights in made_of.values() if parts]
    kinds = [(frozenset(parts), weights) for parts, weights in with_parts]
    if all(kind == kinds[0] for kind in kinds):
        return metric, []
    sets = list(dict.fromkeys(" + ".join(sorted(parts)) for parts, _ in with_parts))
    what = (
        f"are made of different parts ({'; '.join(sets[:4])})"
        if len(sets) > 1
        else f"weigh their parts differently ({sets[0]})"
    )
    in_all = [name for name, key in with_parts[0][0].items() if key and all(parts.get(name) for parts, _ in with_parts)]
    if not in_all or len(with_parts) < len(rows):
        raise BadInput(
            f"compare({metric!r}): the rewards of these runs {what}, so that they are no common scale, and no part "
            "is a metric of all runs. Compare a metric that means the same in all, or the share of solved prompts: "
            "book.rollout_prompts(solved=...)"
        )
    chosen, *others = sorted(in_all)
    more = f" They also share {', '.join(others)}." if others else ""
    return with_parts[0][0][chosen], [
        f"Compared by {with_parts[0][0][chosen]}, which all runs have, and not by {metric}: the rewards {what}.{more}"
    ]


def _is_mean(match: re.Match[str], keys: Sequence[str]) -> bool:
    """Whether this is the mean of a part: its key ends in /mean, or there is no such key (and it is no spread)."""
    name = match[0]
    return bool(match["after"]) or not (name.endswith("/std") or f"{name}/mean" in keys)
