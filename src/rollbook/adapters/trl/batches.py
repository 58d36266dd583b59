"""One batch of completions: its columns gather while the reward functions run, then it is written, whole."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field

from rollbook.adapters.trl.messages import text_of
from rollbook.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from rollbook.run.scope import Scope

__all__ = ["Batch", "Link", "link_of", "write"]

KEEP = 32
"""Batches that wait for their advantages: a Parquet file holds one, written every `logging_steps`."""


@dataclass
class Batch:
    """What one call for rewards was about. `rewards` has a list per function that has answered."""

    step: int
    number: int
    mode: str | None
    prompts: list[str]
    completions: list[str]
    tokens: Sequence[Sequence[int]] | None
    columns: dict[str, list[object]]
    rewards: dict[str, list[object]] = field(default_factory=dict)
    written: bool = False
    sample_ids: list[str] = field(default_factory=list)


class Link:
    """What the callback and the reward functions of one run know of each other.

    Attributes:
      num_generations: completions per prompt, in training and in evaluation; None: not known.
      rank: the number of this process among those that train together.
      max_length: how many tokens a completion may have. ends: the tokens that end one.
      weights: of the rewards, None for all 1.
      waiting: batches that have no advantages yet, the oldest first.
      trainer: a weak reference to the trainer, once a reward function has met it.
    """

    def __init__(self) -> None:
        self.num_generations: int | None = None
        self.num_generations_eval: int | None = None
        self.rank = 0
        self.max_length: int | None = None
        self.ends: frozenset[int] = frozenset()
        self.weights: list[float] | None = None
        self.waiting: list[Batch] = []
        self.trainer: weakref.ref[object] | None = None
        self.wants_advantages = False
        self.lock = threading.Lock()

    def group_size(self, mode: str | None) -> int | None:
        """How many completions belong together."""
        return self.num_generations_eval if mode == "eval" else self.num_generations


_links: weakref.WeakKeyDictionary[object, Link] = weakref.WeakKeyDictionary()


def link_of(run: object) -> Link:
    """The link of a run (or of a scope of it)."""
    whole = getattr(run, "run", run)
    link = _links.get(whole)
    if link is None:
        link = _links[whole] = Link()
    return link


def write(run: Scope, batch: Batch, names: Sequence[str]) -> None:
    """Write the batch into `samples`, one row per completion; failures are counted.

    Args:
      names: the reward functions, in their order; one that did not answer has an empty column.
    """
    if batch.written:
        return
    batch.written = True
    Bill(to=run).guard("trl_samples", "keeping the completions", lambda: _write(run, batch, names))


def _write(run: Scope, batch: Batch, names: Sequence[str]) -> None:
    link = link_of(run)
    n = len(batch.completions)
    label = f"{batch.step}" if batch.number == 0 else f"{batch.step}.{batch.number}"
    attempt = getattr(getattr(run, "run", run), "attempt", 1)
    prefix = "" if attempt == 1 else f"a{attempt}-"
    if batch.mode == "eval":
        prefix += "eval-"
    rewards = {name: [_number(value) for value in batch.rewards.get(name, [None] * n)] for name in names}
    columns: dict[str, object] = {
        **batch.columns,
        "prompt": batch.prompts,
        "rewards": rewards,
        "mode": batch.mode,
        "generation": label,
    }
    total = _total(rewards, link.weights, n)
    if total is not None:
        columns["reward"] = total
    if batch.tokens is not None:
        columns["length"] = [len(ids) for ids in batch.tokens]
        if link.max_length is not None or link.ends:
            columns["finish_reason"] = [_finish(ids, link) for ids in batch.tokens]
    first = link.rank * n
    size = link.group_size(batch.mode)
    if size:
        groups = [f"{prefix}{label}-{(first + i) // size}" for i in range(n)]
    else:
        groups = [f"{prefix}{label}-r{link.rank}-{i}" for i in _runs_of_equals(batch.prompts)]
    ids = [f"{prefix}{label}-{first + i}" for i in range(n)]
    known = run.run.writer.clocks
    clocks = {name: batch.step for name in ("gradient_step", "policy_version", "train_iter") if name in known}
    batch.sample_ids = run.log_samples(batch.completions, ids=ids, group=groups, **columns, **clocks).ids
    if link.wants_advantages:
        with link.lock:
            link.waiting.append(batch)
            del link.waiting[:-KEEP]


def _number(value: Any) -> float | None:
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _total(rewards: dict[str, list[float | None]], weights: list[float] | None, n: int) -> list[float | None] | None:
    """The reward of each completion: the weighted sum of those that are there, as the trainer makes it."""
    if weights is None:
        weights = [1.0] * len(rewards)
    if len(weights) != len(rewards):  # some rewards are models, which nobody here has seen
        return None
    totals: list[float | None] = []
    for i in range(n):
        parts = [
            weight * value
            for weight, column in zip(weights, rewards.values(), strict=True)
            if (value := column[i]) is not None and value == value
        ]
        totals.append(sum(parts) if parts else None)
    return totals


def _finish(ids: Sequence[int], link: Link) -> str | None:
    if not len(ids):
        return None
    if link.ends:
        return "stop" if int(ids[-1]) in link.ends else "length"
    return "length" if link.max_length is not None and len(ids) >= link.max_length else "stop"


def _runs_of_equals(prompts: Sequence[str]) -> list[int]:
    numbers, number = [], -1
    before: str | None = None
    for prompt in prompts:
        if prompt != before or number < 0:
            number, before = number + 1, prompt
        numbers.append(number)
    return numbers


def texts(values: Iterable[object]) -> list[str]:
    """Each prompt or completion as text."""
    return [text_of(value) for value in values]
