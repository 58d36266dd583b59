"""Rollouts of a language model that teach nothing, break, or are not those of the trainer."""

from __future__ import annotations

from typing import Any

import msgspec

from rollbook.errors import BadInput
from rollbook.health._keyed import at_clock
from rollbook.health._memory import Memory, remembered
from rollbook.schema.records import Alert
from rollbook.schema.solved import solved_above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rollbook.schema.columns import Columns, Where
    from rollbook.schema.records import RunInfo

LIMITS = {
    "group/solved_none": 0.9,
    "group/solved_all": 0.9,
    "group/zero_std": 0.75,
    "rollout/truncated": 0.5,
    "rollout/failed": 0.5,
    "rollout/tool_errors": 0.5,
    "rollout/wasted": 0.75,
    "policy/gap_mean": 0.1,
}
"""Finding -> what is too much: shares, and for the gap nats per token."""

_SOURCES = {
    "group/zero_std": "rewardspy 50 %, rldoctor 75 %; DAPO leaves such groups out",
    "policy/gap_mean": "verl's rollout correction: a divergence above 0.1 is too much",
}
_WORDS = {
    "group/solved_none": "of the groups, no rollout solved its task; usually the tasks are too hard, or the reward "
    "never sees a right answer",
    "group/solved_all": "of the groups, all rollouts solved it; usually the tasks are too easy, or the reward is "
    "hacked",
    "group/zero_std": "of the groups have one reward, so that they have no advantage and teach nothing; look at how "
    "hard the prompts are",
    "rollout/truncated": "of the rollouts were cut at a length limit: raise it, or look whether answers stopped ending",
    "rollout/failed": "of the rollouts failed or were aborted: look at the column error, which has the reasons",
    "rollout/tool_errors": "of the tool calls failed: look at the turns of role tool, which name them",
    "rollout/wasted": "of the rollouts were not used or taught nothing; look at their fates, which say why",
    "policy/gap_mean": "nats per token between sampler and trainer: they are not the same model; usually weights were "
    "not passed on, or temperature, precision or masks differ",
}
_FEWEST, _MOST_GROUPS, _MOST_REWARDS, _KEPT = 4, 4_096, 2_048, 20


class _Update(Memory):
    """The rows of one update so far.

    Attributes:
      at: its policy version or gradient step; None before the first row.
      n: how many rows.
      where: the last one.
    """

    at: int | None = None
    n: int = 0
    where: dict[str, Any] = {}

    def is_before(self, at: int) -> bool:
        """Whether it has rows, and a row at `at` is of a later update."""
        return self.at is not None and at > self.at

    def takes(self, at: int, where: Where) -> bool:
        """Count a row if it is of this update. Returns whether it is."""
        if self.at is None:
            self.at = at
        if at != self.at:
            return False
        self.where = where
        self.n += 1
        return True


class _RolloutsOfUpdate(_Update):
    """Counts of rollouts and tool calls, and of each group the number, the least and the largest of its rewards."""

    truncated: int = 0
    failed: int = 0
    tool_calls: float = 0.0
    tool_errors: float = 0.0
    groups: dict[str, tuple[int, float, float]] = {}


class _FatesOfUpdate(_Update):
    """How many fates were wasted, and of what reasons; sum and number of the gaps."""

    wasted: int = 0
    reasons: dict[str, int] = {}
    gap: float = 0.0
    gaps: int = 0


class _Finding(Memory):
    """In how many updates in a row a value was above its limit, and not; whether that was reported; the last values."""

    above: int = 0
    below: int = 0
    reported: bool = False
    last: list[float] = []


class _Seen(Memory):
    """What the rule remembers.

    Attributes:
      rollouts, fates: of the newest update.
      rewards: one of `every`; `next`: how many to leave out before the next one.
      reasons: why fates were wasted, in the last update that was judged.
      found: finding -> how long it has been too much.
    """

    rollouts: _RolloutsOfUpdate = msgspec.field(default_factory=_RolloutsOfUpdate)
    fates: _FatesOfUpdate = msgspec.field(default_factory=_FatesOfUpdate)
    rewards: list[float] = []
    every: int = 1
    next: int = 0
    reasons: dict[str, int] = {}
    found: dict[str, _Finding] = {}


class Rollouts:
    """Rollouts and fates, update by update: groups that no rollout or every rollout solved, or with one reward;
    truncated and failed rollouts, failed tool calls, rollouts that taught nothing, and sampler against trainer.

    A rollout counts at the policy version that began it (without one, at its gradient step), a fate at its gradient
    step. A task is solved as `Book.solved_above` says of the rewards so far (of evenly chosen ones, once there are more
    than 2,048), or above `solved`. Evaluations do not count, nor rows of an older update than the newest. Each finding
    is reported once, until as many updates in a row are not above its limit.

    Args:
      updates: how many updates in a row.
      limits: finding -> another limit than that of `LIMITS`.
      solved: the reward that a solved one is above; None: as above.
    """

    name = "rollouts"
    source = "rollbook's own limits"
    tables = frozenset({"rollouts", "fates"})
    cells = frozenset(
        {"advantage", "gap_mean", "group", "mode", "reason", "reward", "status", "tool_calls", "tool_errors", "used"}
    )
    """The columns that it reads; a run that is read back needs no others."""

    def __init__(
        self, updates: int = 10, limits: Mapping[str, float] | None = None, solved: float | None = None
    ) -> None:
        unknown = set(limits or {}) - set(LIMITS)
        if updates < 1 or unknown:
            raise BadInput(
                f"rule 'rollouts': updates={updates!r} must be at least 1, and limits={limits!r} can have "
                f"{', '.join(LIMITS)}"
            )
        self._updates, self._limits, self._solved = updates, {**LIMITS, **(limits or {})}, solved
        self._memory = _Seen()

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        self._memory = _Seen()

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {"memory": self._memory.plain()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        self._memory = remembered(_Seen, state["memory"])

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        found: list[tuple[float, Alert]] = []
        memory = self._memory
        for at, values, where in _of_training(columns, "rollouts", ("policy_version", "gradient_step")):
            if memory.rollouts.is_before(at):
                found += self._close(self._of_rollouts(memory.rollouts), memory.rollouts.where)
                memory.rollouts = _RolloutsOfUpdate()
            if memory.rollouts.takes(at, where):
                self._add_rollout(memory.rollouts, values)
        for at, values, where in _of_training(columns, "fates", ("gradient_step",)):
            if memory.fates.is_before(at):
                found += self._close(self._of_fates(memory.fates), memory.fates.where)
                memory.fates = _FatesOfUpdate()
            if memory.fates.takes(at, where):
                self._add_fate(memory.fates, values)
        found.sort(key=lambda timed: timed[0])
        return [alert for _time, alert in found]

    def _add_rollout(self, own: _RolloutsOfUpdate, values: Mapping[str, Any]) -> None:
        status = values.get("status")
        own.truncated += status == "truncated"
        own.failed += status in ("failed", "aborted")
        own.tool_calls += _number(values.get("tool_calls")) or 0.0
        own.tool_errors += _number(values.get("tool_errors")) or 0.0
        reward, group = _number(values.get("reward")), values.get("group")
        if reward is None:
            return
        self._remember(reward)
        groups = own.groups
        if isinstance(group, str) and (group in groups or len(groups) < _MOST_GROUPS):
            n, low, high = groups.get(group, (0, reward, reward))
            groups[group] = (n + 1, min(low, reward), max(high, reward))

    def _remember(self, reward: float) -> None:
        """Keep every reward, every second, fourth …: at most `_MOST_REWARDS`."""
        memory = self._memory
        memory.next -= 1
        if memory.next < 0:
            memory.rewards.append(reward)
            memory.next = memory.every - 1
            if len(memory.rewards) >= _MOST_REWARDS:
                memory.rewards = memory.rewards[::2]
                memory.every *= 2

    def _of_rollouts(self, own: _RolloutsOfUpdate) -> Iterator[tuple[str, float, float]]:
        """(finding, value, of how many) of one update."""
        n, groups = own.n, [group for group in own.groups.values() if group[0] > 1]
        if n >= _FEWEST:
            yield "rollout/truncated", own.truncated / n, n
            yield "rollout/failed", own.failed / n, n
        if own.tool_calls >= _FEWEST:
            yield "rollout/tool_errors", own.tool_errors / own.tool_calls, own.tool_calls
        if len(groups) < _FEWEST:
            return
        above = solved_above(self._memory.rewards) if self._solved is None else self._solved
        above = 0.0 if above is None else above
        shares = {
            "group/solved_none": sum(high <= above for _n, _low, high in groups),
            "group/solved_all": sum(low > above for _n, low, _high in groups),
            "group/zero_std": sum(low == high for _n, low, high in groups),
        }
        solved = ("group/solved_none", "group/solved_all")
        is_reported = any(shares[name] > self._limits[name] * len(groups) for name in solved)
        for name, share in shares.items():  # report the same groups once, in the clearer words
            yield name, 0.0 if is_reported and name == "group/zero_std" else share / len(groups), len(groups)

    def _add_fate(self, own: _FatesOfUpdate, values: Mapping[str, Any]) -> None:
        reason = values.get("reason")
        is_wasted = values.get("used") is not True or reason is not None or values.get("advantage") == 0
        own.wasted += is_wasted
        if is_wasted:
            why = str(reason) if reason is not None else "no advantage" if values.get("used") is True else "dropped"
            if why in own.reasons or len(own.reasons) < _KEPT:
                own.reasons[why] = own.reasons.get(why, 0) + 1
        gap = _number(values.get("gap_mean"))
        if gap is not None:
            own.gap += gap
            own.gaps += 1

    def _of_fates(self, own: _FatesOfUpdate) -> Iterator[tuple[str, float, float]]:
        if own.n >= _FEWEST:
            yield "rollout/wasted", own.wasted / own.n, own.n
            self._memory.reasons = dict(sorted(own.reasons.items(), key=lambda pair: -pair[1]))
        if own.gaps:
            yield "policy/gap_mean", own.gap / own.gaps, own.gaps

    def _close(self, judged: Iterable[tuple[str, float, float]], where: Where) -> Iterator[tuple[float, Alert]]:
        """The end of an update: what has now been too much for long enough."""
        for finding, value, n in judged:
            memory = self._memory.found.setdefault(finding, _Finding())
            is_above = value > self._limits[finding]
            memory.above, memory.below = (memory.above + 1, 0) if is_above else (0, memory.below + 1)
            memory.last = [*memory.last, value][-_KEPT:]
            if memory.below >= self._updates:
                memory.reported = False
            if memory.above >= self._updates and not memory.reported:
                memory.reported = True
                yield where["time"], self._alert(finding, value, n, memory.last, where)

    def _alert(self, finding: str, value: float, n: float, last: list[float], where: Where) -> Alert:
        evidence: dict[str, object] = {
            "values": list(last),
            "limit": self._limits[finding],
            "updates": self._updates,
            "of": n,
            **where,
        }
        amount = f"{value:.3g}" if finding == "policy/gap_mean" else f"{100 * value:.0f} %"
        words = _WORDS[finding]
        if finding == "rollout/wasted":
            reasons = evidence["reasons"] = dict(self._memory.reasons)
            words += f" ({', '.join(f'{why}: {count:,}' for why, count in list(reasons.items())[:3])})"
        return Alert(
            self.name,
            "warn",
            f"{finding} was above {self._limits[finding]:g} in {self._updates} updates in a row"
            f"{at_clock(where['clocks'])}: {amount} {words}",
            evidence,
            _SOURCES.get(finding, self.source),
            finding,
            where["clocks"],
        )


def _of_training(columns: Columns, table: str, clocks: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Any], Where]]:
    """The rows of a table with the first of these clocks that they have: its reading, values, row. No evaluations."""
    for values, where in columns.rows(table):
        at = next((where["clocks"][name] for name in clocks if name in where["clocks"]), None)
        if at is not None and values.get("mode") != "eval" and values.get("reason") != "evaluation":
            yield at, values, where


def _number(value: object) -> float | None:
    if not isinstance(value, (int, float)):
        return None
    return float(value) if -1e300 < value < 1e300 else None  # a NaN and what no float holds are no rewards
