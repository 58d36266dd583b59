"""Which key a question is about if none is named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rollbook.compare.facts import Fact
from rollbook.errors import BadInput
from rollbook.runs.source import Row, Source

_TESTS = re.compile(r"(test|eval|evaluation|evaluate|val|valid|validation|heldout|held_out)[/_-]")
_SCORES = re.compile(
    r"return|reward|score|success|accuracy|\bacc\b|\bpass@|(pass|solve|win)_?rate|exact_match", re.IGNORECASE
)
_SPREAD = re.compile(r"(std|sd|min|max|length|seconds)$")
_OFFERED = 20


def usual_score(source: Source, rows: Sequence[Row], asked: str) -> Fact:
    """The score that most people mean, tests before training: the fact that it was taken, with `values["metric"]`.

    Args:
      asked: the name of the question, for the error.
    Raises:
      BadInput: no key of the runs is called like a score.
    """
    first = next(iter(metrics := metrics_of(source, rows)), "")
    if not _is_score(_meanings(source, rows).get(first, first)):
        offered = ", ".join(metrics[:_OFFERED]) or "no key"
        more = f" and {len(metrics) - _OFFERED:,} more" if len(metrics) > _OFFERED else ""
        raise BadInput(
            f"{asked}: no key of these runs is called like a score.", f"Say which key. They have {offered}{more}"
        )
    return taken(first)


def taken(metric: str) -> Fact:
    """The fact that nobody named a key and this one was taken."""
    return Fact("usual score", values={"metric": metric})


def metrics_of(source: Source, rows: Sequence[Row]) -> list[str]:
    """The keys to compare first: test scores, other scores, then those that most runs have.

    A canonical name is used only if the runs have several keys for it. Keys about the machine and rollbook are left
    out.
    """
    have: Counter[str] = Counter()
    own: dict[str, set[str]] = {}
    known = source.keys()
    for row in rows:
        keys, canonical = known.get(str(row["path"]), ((), {}))
        have.update({*keys, *canonical.values()})
        for key, name in canonical.items():
            own.setdefault(name, set()).add(key)
    for name, others in own.items():
        if len(others) == 1 and name not in others and have[name] == sum(have[key] for key in others):
            del have[name]
    return telling_first(have, _meanings(source, rows))


def telling_first(have: Mapping[str, int], meanings: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Keys in the order in which `metrics_of` has them.

    Args:
      have: key -> how many runs have it.
      meanings: key -> its canonical name, which says more than the name that a tool gives it.
    """

    def rank(key: str) -> tuple[bool, bool, bool, int, str]:
        meant = meanings.get(key, key)
        scored = _is_score(meant)
        return not (scored and _TESTS.match(meant)), not scored, not meant.endswith("return"), -have[key], key

    return sorted((key for key in have if not key.startswith(("rollbook/", "host/"))), key=rank)


def _meanings(source: Source, rows: Sequence[Row]) -> dict[str, str]:
    """key -> its canonical name, where it has one: `rollout/ep_rew_mean` is a return, too."""
    known = source.keys()
    return {key: name for row in rows for key, name in known.get(str(row["path"]), ((), {}))[1].items() if key != name}


def _is_score(meaning: str) -> bool:
    return _SCORES.search(meaning) is not None and _SPREAD.search(meaning) is None
