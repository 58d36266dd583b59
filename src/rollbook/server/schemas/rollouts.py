"""Rollouts: their table, one as a conversation, its group, its prompt over training, and what became of all."""

from __future__ import annotations

from typing import Literal

import msgspec

from rollbook.server.schemas.common import Answer, Cell, Column, Num, OfRun, Row, Sort

__all__ = [
    "FatesAnswer",
    "FatesAsk",
    "FatesLayer",
    "OneRolloutAnswer",
    "OneRolloutAsk",
    "Prompt",
    "PromptsAnswer",
    "PromptsAsk",
    "RolloutRow",
    "RolloutTokens",
    "RolloutTurn",
    "RolloutVersion",
    "RolloutsAnswer",
    "RolloutsAsk",
    "SharedPromptsAnswer",
    "SharedPromptsAsk",
    "SharedPromptsRow",
]


class RolloutsAsk(OfRun, kw_only=True):
    """Which rollouts.

    Attributes:
      search: words that must all occur in the last answer or the prompt.
      where: a condition in SQL over rollouts_now, such as reward > 1 and not used.
      group: only those of the group of this rollout; task: only those of its task.
    """

    search: str | None = None
    where: str | None = None
    sort: list[Sort] = []
    offset: int = 0
    limit: int = 100
    group: str | None = None
    task: str | None = None


class RolloutRow(msgspec.Struct, kw_only=True):
    """One rollout with its newest fate: its id, and its cells."""

    id: str
    cells: Row


class RolloutsAnswer(Answer, kw_only=True):
    """A window of the rollouts."""

    total: int
    matched: int
    offset: int
    columns: list[Column]
    rows: list[RolloutRow]


class OneRolloutAsk(OfRun, kw_only=True):
    """One rollout by its id."""

    id: str


class RolloutTokens(msgspec.Struct, kw_only=True):
    """The tokens of a turn.

    Attributes:
      text: ids, as texts; columns: a number for each (sampler, trainer, gap, entropy, advantage, mask).
    """

    text: list[str]
    columns: dict[str, list[Num]]


class RolloutTurn(msgspec.Struct, kw_only=True):
    """One turn.

    Attributes:
      calls: the tool calls, as JSON. length: characters of the whole text, where the text was cut short.
    """

    turn: int
    parent: int | None
    role: str
    name: str | None
    text: str | None
    length: int | None
    calls: str | None
    n_tokens: int | None
    trained: bool | None
    seconds: Num
    finish_reason: str | None
    error: str | None
    reward: Num
    policy_version: int | None
    tokens: RolloutTokens | None


class RolloutVersion(msgspec.Struct, kw_only=True):
    """A task at one version of the policy.

    Attributes:
      solved: above the middle of the run's lowest and highest reward; low, high: of their share, 95 % (Wilson).
    """

    version: int | None
    n: int
    mean: Num
    solved: int
    low: Num
    high: Num
    used: int


class OneRolloutAnswer(Answer, kw_only=True):
    """One rollout with its turns, all its fates, and its task over training."""

    id: str
    cells: Row
    prompt: Cell
    messages: str | None
    tools: str | None
    turns: list[RolloutTurn]
    tokens: RolloutTokens | None
    fates: list[Row]
    history: list[RolloutVersion]
    turns_left_out: int


class FatesAsk(OfRun, kw_only=True):
    """What became of all rollouts, in so many stretches of training."""

    points: int = 120


class FatesLayer(msgspec.Struct, kw_only=True):
    """The rollouts of one reason in each stretch."""

    reason: str
    n: list[int]
    total: int
    tokens: Num
    first: Num


class FatesAnswer(Answer, kw_only=True):
    """What became of the rollouts over training.

    Attributes:
      x: gradient_step or policy_version; places: where each stretch begins.
      curves: name -> a number for each stretch. stale: a row for each staleness. tools: a row for each tool.
      words: those that grew most among high advantage.
    """

    x: str
    places: list[Num]
    total: int
    layers: list[FatesLayer]
    curves: dict[str, list[Num]]
    stale: list[Row]
    tools: list[Row]
    words: list[Row]


class PromptsAsk(OfRun, kw_only=True):
    """Which prompts of a run.

    Attributes:
      only: "never", "sometimes" or "always" solved.
      sort: columns of `Prompt`, such as recent_rate; without any, by rate, then by most attempts.
    """

    only: Literal["never", "sometimes", "always"] | None = None
    sort: list[Sort] = []
    offset: int = 0
    limit: int = 100


class Prompt(msgspec.Struct, kw_only=True):
    """One prompt over training; evaluations do not count.

    Attributes:
      id: of the task. prompt: its beginning; of a conversation that of the user's last message.
      rollouts: attempts; groups: of rollouts.
      solved: as in `RolloutVersion`; rate: solved / rollouts; low, high: of the rate, 95 % (Wilson).
      recent_rollouts: attempts in the last fifth of training, with their solved, rate, low and high; null without any.
      first, last: step of its first and last attempt. best: its highest reward. example: its newest rollout.
    """

    id: str
    prompt: str | None
    rollouts: int
    groups: int
    solved: int
    rate: Num
    low: Num
    high: Num
    recent_rollouts: int
    recent_solved: int
    recent_rate: Num
    recent_low: Num
    recent_high: Num
    first: int | None
    last: int | None
    best: Num
    example: str


class PromptsAnswer(Answer, kw_only=True):
    """A window of the prompts.

    Attributes:
      x: gradient_step or policy_version; recent_from: where its last fifth begins.
      above: a rollout with a reward above this solved its prompt.
      total: all prompts; never, sometimes, always: how many of them are solved so; matched: those asked for.
    """

    x: str
    recent_from: int | None
    above: Num
    total: int
    never: int
    sometimes: int
    always: int
    matched: int
    offset: int
    rows: list[Prompt]


class SharedPromptsAsk(OfRun, kw_only=True):
    """The prompts that a run has in common with another one.

    Attributes:
      other: the other run.
      limit: so many rows: half of them where the other run gains most, half where it loses most.
    """

    other: str
    limit: int = 200


class SharedPromptsRow(msgspec.Struct, kw_only=True):
    """One prompt in both runs; the second number of each pair is the other run's.

    Attributes:
      solved: rollouts with a reward above the middle of the lowest and highest of both runs.
      example: a rollout of each.
    """

    prompt: str | None
    n: list[int]
    mean: list[Num]
    solved: list[int]
    example: list[str]


class SharedPromptsAnswer(Answer, kw_only=True):
    """Prompts in both runs, from the largest loss of the other run to its largest gain.

    Attributes:
      shared: how many prompts both have; only: how many each has alone.
      mean: the mean over the shared prompts of their mean rewards, a number for each run.
      better, worse: on how many prompts the other run's mean reward is higher, or lower.
    """

    shared: int
    only: list[int]
    mean: list[Num]
    better: int
    worse: int
    rows: list[SharedPromptsRow]
