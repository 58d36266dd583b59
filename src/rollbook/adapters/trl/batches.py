"""One batch of completions: its columns gather while the reward functions run, then it is written, whole."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field

from rollbook.adapters.trl.messages import text_of
from rollbook.ground.bill import Bill

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
    """What one call for rewards was about. `rewards` has a list per function that has answered.

    `step` is that of the optimizer when the completions were generated; `lengths` are in tokens of the policy.
    """

    step: int
    number: int
    mode: str | None
    prompts: list[str]
    completions: list[str]
    tokens: Sequence[Sequence[int]] | None
    columns: dict[str, list[object]]
    lengths: Sequence[int] | None = None
    logprobs: Sequence[Sequence[float | None]] | None = None
    rewards: dict[str, list[object]] = field(default_factory=dict)
    written: bool = False
    sample_ids: list[str] = field(default_factory=list)

    @property
    def logged_at(self) -> int:
        """The gradient step of the trainer's row about this batch: in training the one that it is generated for."""
        return self.step if self.mode == "eval" else self.step + 1


class Link:
    """What the callback and the reward functions of one run know of each other.

    Attributes:
      num_generations: completions per prompt, in training and in evaluation; None: not known.
      rank: the number of this process among those that train together.
      max_length: how many tokens a completion may have. ends: the tokens that end one.
      weights: of the rewards as the trainer's arguments have them; None for all 1, or if they are not known.
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


def write(run: Scope, batch: Batch, names: Sequence[str], weights: Sequence[float] | None) -> None:
    """Write the batch into `samples`, one row per completion; failures are counted.

    Args:
      names: the reward functions, in their order; one that did not answer has an empty column.
      weights: of each of them in the trainer's reward; None: that reward holds more than these, or is not known.
    """
    if batch.written:
        return
    batch.written = True
    Bill(to=run).guard("trl_samples", "keeping the completions", lambda: _write(run, batch, names, weights))


def _write(run: Scope, batch: Batch, names: Sequence[str], weights: Sequence[float] | None) -> None:
    import numpy as np

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
    if weights is not None and len(batch.rewards) == len(names):
        columns["reward"] = _total(rewards, weights, n)
    if batch.lengths is not None:
        columns["length"] = list(batch.lengths)
    if batch.tokens is not None:
        columns["tokens"] = [np.asarray(ids, np.int32) for ids in batch.tokens]
    if batch.logprobs is not None:  # the engine has None for NaN
        columns["sampler_logprobs"] = [np.asarray(numbers, np.float32) for numbers in batch.logprobs]
    if batch.tokens is not None and (link.max_length is not None or link.ends):
        columns["finish_reason"] = [_finish(ids, link) for ids in batch.tokens]
    first = link.rank * n
    size = link.group_size(batch.mode)
    if size:
        groups = [f"{prefix}{label}-{(first + i) // size}" for i in range(n)]
    else:
        groups = [f"{prefix}{label}-r{link.rank}-{i}" for i in _runs_of_equals(batch.prompts)]
    ids = [f"{prefix}{label}-{first + i}" for i in range(n)]
    known = run.run.writer.clocks
    clocks: dict[str, int] = {name: batch.logged_at for name in ("gradient_step", "train_iter") if name in known}
    if "policy_version" in known:
        clocks["policy_version"] = batch.step
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


def _total(rewards: dict[str, list[float | None]], weights: Sequence[float], n: int) -> list[float | None]:
    """The reward of each completion: the weighted sum of those that are there, as the trainer makes it."""
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
