"""Rewards that are sums of parts: runs whose parts differ are not compared by the sum."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from rollbook.book import Book
from rollbook.compare.facts import Fact
from rollbook.errors import BadInput
from rollbook.runs.source import Row, Source
from rollbook.storage import Pieces

_PART = re.compile(r"(?P<before>(?:.*/|eval_)?)rewards/(?P<part>.+?)(?P<after>/mean)?$")
"""A metric of one part of the reward, as TRL names it."""
_TOTALS = ("reward", "return")
_PREFIXES = ("", "eval_")
PARTS = "reward parts"
"""The name of the facts that `reward_parts_of` makes; see `Source.facts`."""
Parts: TypeAlias = Mapping[str, Mapping[str, str]]
"""{prefix of the metrics: {part of the reward: its metric, "" if it has none}}, without prefixes that have no part."""


def on_one_scale(source: Source, rows: Sequence[Row], metric: str) -> tuple[str, list[Fact]]:
    """A metric that means the same in all runs, and the reason if it is not the requested one.

    Args:
      source: of the runs; rows: those that are asked about.
      metric: a key or a canonical name. Only whole rewards have parts.
    Returns:
      The metric of a part of the reward that all runs have, with a fact about it; or the metric as it was given.
    Raises:
      BadInput: the rewards are made of different parts and have none in common.
    """
    if not metric.replace("_", "/").rsplit("/", 1)[-1].endswith(_TOTALS) or len(rows) < 2:
        return metric, []
    prefix = "eval_" if "eval" in re.split("[/_]", metric) else ""
    parts_of = source.facts(PARTS, reward_parts_of)
    made_of = [(parts_of.get(str(row["path"]), {}).get(prefix, {}), _weights(row)) for row in rows]
    with_parts = [(parts, weights) for parts, weights in made_of if parts]
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
            f"compare({metric!r}): the rewards of these runs {what}: they have no common scale, and no part "
            "is a metric of all runs.",
            "Compare a metric that means the same in all, or the share of solved prompts: "
            "book.rollout_prompts(solved=...)",
        )
    chosen, *others = sorted(in_all)
    metric_of_all = with_parts[0][0][chosen]
    values = {"metric": metric, "instead": metric_of_all, "what": what, "others": others}
    return metric_of_all, [Fact("rewards of unlike parts", values=values)]


def reward_parts_of(book: Book) -> Parts:
    """The parts of a run's rewards."""

    def work(tables: Mapping[str, Pieces]) -> Parts:
        of_keys, of_rollouts = of_metrics(tables["metrics"]), book.reward_parts() if tables["rollouts"] else []
        return {
            prefix: {**dict.fromkeys(of_rollouts, ""), **of_keys.get(prefix, {})}
            for prefix in _PREFIXES
            if of_rollouts or prefix in of_keys
        }

    return book.files.read(["metrics", "rollouts"], work)


def of_metrics(metrics: Pieces) -> Parts:
    """The same of a run without rollouts."""
    return _parts_in(tuple(dict.fromkeys(key for piece in metrics for key in piece.meta["keys"])))


@functools.lru_cache(maxsize=64)
def _parts_in(keys: tuple[str, ...]) -> Parts:
    """The same of keys. The runs of a study mostly have the same ones."""
    found = [match for match in map(_PART.fullmatch, keys) if match]
    parts = {
        prefix: {match["part"]: match[0] for match in found if match["before"] == prefix and _is_mean(match, keys)}
        for prefix in _PREFIXES
    }
    return {prefix: own for prefix, own in parts.items() if own}


def _weights(row: Row) -> object:
    config = row.get("config")
    return config.get("reward_weights") if isinstance(config, Mapping) else None


def _is_mean(match: re.Match[str], keys: Sequence[str]) -> bool:
    """Whether this is the mean of a part: its key ends in /mean, or there is no such key (and it is no spread)."""
    name = match[0]
    return bool(match["after"]) or not (name.endswith("/std") or f"{name}/mean" in keys)
