"""One batch of completions: its columns are collected while the reward functions run, then written as rollouts."""

from __future__ import annotations

import json
import threading
import weakref
from dataclasses import dataclass, field

from rollbook.adapters.trl.messages import is_conversation, text_of, turns_of
from rollbook.system.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from rollbook.run.scope import Scope

KEEP = 32
"""Maximum number of batches that wait for the trainer's record; older ones are written with the known data."""


@dataclass
class Batch:
    """The data of one call for rewards.

    Attributes:
      step: of the optimizer when the completions were generated.
      number: of the batch among those generated at this step.
      mode: "train" or "eval".
      prompts, completions: as passed to the reward functions.
      tokens, logprobs, masks: of each completion: its ids, the log-probabilities of the generating engine, and which
        tokens the policy wrote; None if unknown. Without masks and with `mixed` set, it is unknown whether tools wrote
        some of them.
      rewards: a list for each function that has answered.
      weights: of each name in the reward; None: not known.
      ids: of the rollouts, once they are written.
      advantages: of the completions, once the trainer's record has them.
      indices: chunk of the trainer's buffer -> (indices in this batch, the known data of each there).
      uses: how often each completion was trained on.
    """

    step: int
    number: int
    mode: str | None
    prompts: list[Any]
    completions: list[Any]
    tokens: Sequence[Sequence[int]] | None
    columns: dict[str, list[object]]
    logprobs: Sequence[Sequence[float | None]] | None = None
    masks: Sequence[Sequence[int]] | None = None
    mixed: bool = False
    rewards: dict[str, list[Any]] = field(default_factory=dict)
    names: Sequence[str] = ()
    weights: Mapping[str, float] | None = None
    seconds: float = 0.0
    groups: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    advantages: list[float] | None = None
    indices: dict[int, tuple[list[int], dict[str, list[Any]]]] = field(default_factory=dict)
    uses: list[int] = field(default_factory=list)
    written: bool = False

    def __len__(self) -> int:
        return len(self.completions)


class Link:
    """Data that the callback and the reward functions of one run share.

    Attributes:
      joined: whether there is a callback that will read the trainer's record.
      num_generations: completions per prompt, in training and in evaluation; None: not known.
      rank: the number of this process among those that train together.
      max_length: the maximum number of tokens of a completion.
      ends: the tokens that end one.
      masks_truncated: whether the loss leaves out completions without an end.
      weights: of the rewards in the trainer's arguments; None if all are 1, or not known.
      waiting: batches not yet compared with the trainer's record, oldest first.
      current: the batch that is being trained on.
      trainer: a weak reference to the trainer, once a reward function has found it.
    """

    def __init__(self) -> None:
        self.joined = False
        self.num_generations: int | None = None
        self.num_generations_eval: int | None = None
        self.rank = 0
        self.max_length: int | None = None
        self.ends: frozenset[int] = frozenset()
        self.masks_truncated = False
        self.weights: list[float] | None = None
        self.waiting: list[Batch] = []
        self.current: Batch | None = None
        self.trainer: weakref.ref[object] | None = None
        self.lock = threading.Lock()

    def group_size(self, mode: str | None) -> int | None:
        """The number of completions in a group."""
        return self.num_generations_eval if mode == "eval" else self.num_generations


_links: weakref.WeakKeyDictionary[object, Link] = weakref.WeakKeyDictionary()


def link_of(run: object) -> Link:
    """The link of a run (or of a scope of a run)."""
    whole = getattr(run, "run", run)
    link = _links.get(whole)
    if link is None:
        link = _links[whole] = Link()
    return link


def write(run: Scope, batch: Batch) -> None:
    """Write the batch as rollouts, one per completion. Failures are counted; a second call does nothing."""
    if batch.written:
        return
    batch.written = True
    Bill(to=run).guard("trl_rollouts", "keeping the completions", lambda: _write(run, batch))


def _write(run: Scope, batch: Batch) -> None:
    link, n = link_of(run), len(batch)
    attempt = getattr(getattr(run, "run", run), "attempt", 1)
    label = "" if attempt == 1 else f"a{attempt}-"
    label += "eval-" if batch.mode == "eval" else ""
    label += f"{batch.step}" if batch.number == 0 else f"{batch.step}.{batch.number}"
    batch.groups = _groups(batch, link, label)
    columns: dict[str, Any] = {
        **batch.columns,
        "mode": batch.mode,
        "batch": label,
        "group": batch.groups,
        "rewards": {name: batch.rewards.get(name, [None] * n) for name in batch.names},
        "reward": totals(batch),
        "seconds/reward": batch.seconds / n if batch.seconds and n else None,
    }
    if batch.tokens is not None and (link.max_length is not None or link.ends):
        columns["stop_reason"] = [_finish(ids, link) for ids in batch.tokens]
    of_tokens = _of_tokens(batch)
    completions: list[Any]
    if any(map(is_conversation, batch.completions)):
        parts = ({name: cells[i] for name, cells in of_tokens.items()} for i in range(n))
        completions = [turns_of(value, part) for value, part in zip(batch.completions, parts, strict=True)]
    else:
        completions = texts(batch.completions)
        columns.update(of_tokens)
    logged = batch.step if batch.mode == "eval" else batch.step + 1  # the gradient step of the trainer's own row
    clocks = {name: logged for name in ("gradient_step", "train_iter") if name in run.run.internals.writer.clocks}
    batch.ids = run.run.rollouts.log_many(
        prompts=[_task(prompt) for prompt in batch.prompts],
        completions=completions,
        policy_version=batch.step,
        **columns,
        **clocks,
    )
    batch.uses = [0] * len(batch.ids)


def _groups(batch: Batch, link: Link, label: str) -> list[str]:
    """The group of each completion: those of one prompt, by their number, or by equal prompts next to each other."""
    n, size = len(batch), link.group_size(batch.mode)
    if size:
        return [f"{label}-{(link.rank * n + i) // size}" for i in range(n)]
    return [f"{label}-r{link.rank}-{i}" for i in _runs_of_equals(texts(batch.prompts))]


def _of_tokens(batch: Batch) -> dict[str, list[Any]]:
    """Columns with a list per completion: ids, log-probabilities, mask; {} if it is unknown who wrote which token."""
    import numpy as np

    if batch.tokens is None or (batch.mixed and batch.masks is None):
        return {}
    lists: dict[str, list[Any]] = {"tokens": [np.asarray(ids, np.int32) for ids in batch.tokens]}
    if batch.logprobs is not None:  # the engine writes None for NaN
        lists["logprobs"] = [np.asarray(numbers, np.float32) for numbers in batch.logprobs]
    if batch.masks is not None:
        lists["mask"] = [np.asarray(mask, np.int8) for mask in batch.masks]
    return lists


def totals(batch: Batch) -> list[float | None] | None:
    """The reward of each completion: the weighted sum of the existing ones, computed as in the trainer.

    None if the trainer's reward has parts that are unknown here.
    """
    weights = batch.weights
    if weights is None or set(batch.rewards) != set(weights):
        return None
    sums: list[float | None] = []
    for i in range(len(batch)):
        parts = [
            weight * value
            for name, weight in weights.items()
            if (value := number(batch.rewards[name][i])) is not None and value == value
        ]
        sums.append(sum(parts) if parts else None)
    return sums


def number(value: Any) -> float | None:
    """A reward as a number; None for None."""
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _task(prompt: object) -> object:
    """A prompt as a task: a text, the text of a single message, or the messages if they are plain data."""
    if not is_conversation(prompt) or len(prompt) == 1:  # type: ignore[arg-type]
        return text_of(prompt)
    try:
        json.dumps(prompt)
    except (TypeError, ValueError):  # images
        return text_of(prompt)
    return prompt


def _finish(ids: Sequence[int], link: Link) -> str | None:
    if not len(ids):
        return None
    if link.ends:
        return "stop" if int(ids[-1]) in link.ends else "length"
    return "length" if link.max_length is not None and len(ids) >= link.max_length else "stop"


def _runs_of_equals(prompts: Sequence[str]) -> list[int]:
    numbers, last = [], -1
    before: str | None = None
    for prompt in prompts:
        if prompt != before or last < 0:
            last, before = last + 1, prompt
        numbers.append(last)
    return numbers


def texts(values: Iterable[object]) -> list[str]:
    """Each prompt or completion as text."""
    return [text_of(value) for value in values]
