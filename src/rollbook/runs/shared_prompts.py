"""Two runs on the prompts that both have, by what both measure alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rollbook.book import Book
from rollbook.book.questions import Files, Queries, cells_of, listed
from rollbook.book.questions import Source as OfOneRun
from rollbook.errors import BadInput
from rollbook.runs.questions import SharedPrompts
from rollbook.schema.expressions import quoted
from rollbook.schema.solved import solved_above
from rollbook.system.brief import brief, screenful
from rollbook.system.texts import amount, quantity

Pair = tuple[float, float]


@brief
@dataclass(frozen=True, slots=True)
class SharedPrompt:
    """One prompt of two runs; the second number of each pair is the other run's.

    Attributes:
      task_id, prompt: of the task.
      n: rollouts with the measure; mean: of the measure; solved: how many are above the number of the answer.
      example: the newest rollout of each.
    """

    task_id: str
    prompt: str | None
    n: tuple[int, int]
    mean: Pair
    solved: tuple[int, int]
    example: tuple[str, str]


@dataclass(frozen=True, slots=True)
class PromptsOfTwo:
    """Prompts in both runs, from the largest loss of the other run to its largest gain.

    Attributes:
      names: what the runs are called.
      measure: what is compared: "reward", parts of it ("accuracy", "accuracy + format"), or "share solved".
      note: why this is not the reward, in words; "" if it is.
      parts: the parts of the reward that both have.
      above: a number for each run; a rollout above it is solved. None: no rollout has the measure.
      shared: how many prompts both have; only: how many each has alone.
      mean: over the shared prompts, of their means of the measure, for each run; None without any.
      better, worse: on how many prompts the other run's mean is higher, or lower.
      prompts: of `shared`, as many as were asked for: half where the other run loses most, half where it gains most.
      gain: (low, high) of the 95 % interval of the other run's mean gain, over prompts (Student's t of the differences
        within a prompt); None for fewer than `FEWEST_PROMPTS`, or where no prompt differs.
    """

    names: tuple[str, str]
    measure: str
    note: str
    parts: tuple[str, ...]
    above: tuple[float | None, float | None]
    shared: int
    only: tuple[int, int]
    mean: Pair | None
    better: int
    worse: int
    prompts: tuple[SharedPrompt, ...]
    gain: Pair | None = None

    def __repr__(self) -> str:
        return screenful([f"<PromptsOfTwo {' and '.join(self.names)}: {self.measure}>", *self.sentences()])

    def sentences(self) -> list[str]:
        """The answer, and what is compared where that is not the reward."""
        if self.mean is None:
            return ["These runs have no prompt in common."]
        one, other = self.names
        equal = self.shared - self.better - self.worse
        same = f", and equal on {equal:,}" if equal else ""
        first = (
            f"{amount(self.shared, 'prompt')} in both runs: {other} is better on {self.better:,} and worse on "
            f"{self.worse:,}{same}. Mean {self.measure}: {self.mean[0]:.4g} of {one}, {self.mean[1]:.4g} of {other}."
        )
        return [first, *self._how_sure(), *([self.note] if self.note else [])]

    def _how_sure(self) -> list[str]:
        """Whether the gain may be chance."""
        if self.mean is None or self.better == self.worse == 0:
            return []
        if self.gain is None:
            return [f"Fewer than {FEWEST_PROMPTS} prompts do not tell a gain from chance."]
        low, high = self.gain
        mean = self.mean[1] - self.mean[0]
        one, other = self.names
        if low > 0 or high < 0:
            ahead, behind = (other, one) if low > 0 else (one, other)
            words = f"on prompts like these {ahead} is better than {behind}"
        else:
            words = "it may be chance"
        return [
            f"{other} minus {one}: {quantity(mean)}, 95 % interval {quantity(low)} to {quantity(high)} over prompts "
            f"(Student's t of {self.shared:,} differences): {words}. It is about these two runs; other seeds may "
            "differ."
        ]

    def table(self) -> list[dict[str, Any]]:
        """One row per prompt: task_id, prompt, and of each run n, mean, solved, example; gain: of the other run."""
        return [
            {
                "task_id": each.task_id,
                "prompt": each.prompt,
                "gain": each.mean[1] - each.mean[0],
                **{
                    f"{name}{suffix}": getattr(each, name)[number]
                    for number, suffix in enumerate(("", "_other"))
                    for name in ("n", "mean", "solved", "example")
                },
            }
            for each in self.prompts
        ]

    def as_data(self) -> dict[str, Any]:
        """The numbers about all shared prompts, without the prompts."""
        data = {"measure": self.measure, "parts": list(self.parts), "above": list(self.above), "shared": self.shared}
        mean = None if self.mean is None else list(self.mean)
        return {**data, "only": list(self.only), "mean": mean, "better": self.better, "worse": self.worse}


def of_books(ask: SharedPrompts, one: Book, other: Book) -> PromptsOfTwo:
    """The answer, from the files of both runs."""
    return prompts_of_two(ask, (Files(one), Files(other)), (one.name, other.name))


def prompts_of_two(
    ask: SharedPrompts, sources: tuple[OfOneRun, OfOneRun], names: tuple[str, str], text: str = "prompt"
) -> PromptsOfTwo:
    """The answer; see `RunSet.shared_prompts` for what it raises.

    Args:
      sources: the two runs; names: what they are called.
      text: the SQL expression over `prompt` that is shown.
    """
    if ask.limit < 0:
        raise BadInput(f"limit={ask.limit}: a number of rows is not below 0.", "Give 0 or more")
    # What both runs measure alike: the reward, parts of it, or else the share of solved rollouts.
    found = [source.asked(_TABLES, _reward_of) for source in sources]
    weights = [_config_of(source).get("reward_weights") for source in sources]
    chosen_parts, measure, note = _measure([parts for parts, _ in found], weights, ask.part)
    value = " + ".join(quoted(f"rewards/{name}") for name in chosen_parts) or "reward"
    # The number above which a rollout is solved, in each run.
    known = [source.asked(_TABLES, _values(value)) for source in sources]
    if measure == _SOLVED:  # no scale in common: each run by its own
        above = [solved_above(own) for own in known]
    else:
        above = [solved_above([*known[0], *known[1]])] * 2
    limits = [ask.above if ask.above is not None else own for own in above]
    # One row per prompt of each run; of the shared ones those with the largest loss and the largest gain.
    a, b = (
        {
            str(cells["task_id"]): cells if measure != _SOLVED else {**cells, "mean": cells["solved"] / cells["n"]}
            for cells in cells_of(source.asked(_TABLES, _of_prompts(value, limit or 0.0)))
        }
        for source, limit in zip(sources, limits, strict=True)
    )
    tasks = sorted(a.keys() & b.keys(), key=lambda task: (b[task]["mean"] - a[task]["mean"], task))
    half = ask.limit // 2
    chosen = tasks if len(tasks) <= ask.limit else [*tasks[: ask.limit - half], *tasks[len(tasks) - half :]]
    prompts = sources[0].asked(["tasks"], _texts(chosen, text)) if chosen else {}
    gains = [b[task]["mean"] - a[task]["mean"] for task in tasks]
    one, other = (sum(own[task]["mean"] for task in tasks) / max(1, len(tasks)) for own in (a, b))
    return PromptsOfTwo(
        names=names,
        measure=measure,
        note=note,
        parts=tuple(name for name in found[0][0] if name in found[1][0]),
        above=(limits[0], limits[1]),
        shared=len(tasks),
        only=(len(a) - len(tasks), len(b) - len(tasks)),
        mean=(one, other) if tasks else None,
        better=sum(gain > 0 for gain in gains),
        worse=sum(gain < 0 for gain in gains),
        gain=_interval(gains),
        prompts=tuple(
            SharedPrompt(
                task_id=task,
                prompt=prompts.get(task),
                n=(a[task]["n"], b[task]["n"]),
                mean=(a[task]["mean"], b[task]["mean"]),
                solved=(a[task]["solved"], b[task]["solved"]),
                example=(str(a[task]["example"]), str(b[task]["example"])),
            )
            for task in chosen
        ),
    )


FEWEST_PROMPTS = 20
"""Shared prompts below which a gain has no interval."""


def _interval(gains: Sequence[float]) -> Pair | None:
    """The 95 % interval of the mean of some differences."""
    n = len(gains)
    if n < FEWEST_PROMPTS or min(gains) == max(gains):
        return None
    from rollbook.stats import student_t

    low, high = student_t(gains)
    return float(low[0]), float(high[0])


_TABLES = ["rollouts"]
_SOLVED = "share solved"


def _config_of(source: OfOneRun) -> Mapping[str, object]:
    with source.book() as book:
        return book.info.config


def _of_prompts(value: str, above: float) -> Callable[[Queries], pa.Table]:
    """One row per prompt: its rollouts, the mean of a measure and how many are above a number."""
    query = f"""with r as (select task_id, rollout_id, time, ({value})::double as value from rollouts
      where task_id is not null and mode is distinct from 'eval')
    select task_id, count(*) as n, avg(value) as mean, count(*) filter (value > {above!r}) as solved,
      max_by(rollout_id, time) as example from r where isfinite(value) group by 1"""
    return lambda db: db.table(query if _has_rollouts(db) else f"select * from ({_NO_PROMPT}) where false")


_NO_PROMPT = "select '' as task_id, 0 as n, 0.0 as mean, 0 as solved, '' as example"


def _has_rollouts(db: Queries) -> bool:
    return {"task_id", "rollout_id", "mode", "reward"} <= {*db.columns["rollouts"]}


def _values(value: str) -> Callable[[Queries], list[float]]:
    """A measure of all rollouts of training that have it."""

    def work(db: Queries) -> list[float]:
        if not _has_rollouts(db):
            return []
        query = f"select ({value})::double as value from rollouts where mode is distinct from 'eval'"
        cells = db.table(query)["value"].to_pylist()
        return [cell for cell in cells if cell is not None]

    return work


def _texts(tasks: Sequence[str], text: str) -> Callable[[Queries], dict[str, str | None]]:
    """The prompt of each of some tasks."""
    query = f"select task_id, any_value({text}) as prompt from tasks where task_id in ({listed(tasks)}) group by 1"

    def work(db: Queries) -> dict[str, str | None]:
        if not {"task_id", "prompt"} <= {*db.columns["tasks"]}:
            return {}
        return {str(cells["task_id"]): cells["prompt"] for cells in cells_of(db.table(query))}

    return work


def _reward_of(db: Queries) -> tuple[list[str], bool]:
    """The parts that rewards of a run have, sorted, and whether there is a reward."""
    if not _has_rollouts(db):
        return [], False
    empty = set(db.empty.get("rollouts", ()))
    names = [name for name in db.columns["rollouts"] if name not in empty]
    parts = [name for name in names if name.startswith("rewards/")]
    counts = ", ".join(["count(reward)", *(f"count({quoted(name)})" for name in parts)])
    (there,) = db.table(f"select {counts} from rollouts").to_pylist()
    has_reward, *has = there.values()
    return sorted(name[8:] for name, n in zip(parts, has, strict=True) if n), bool(has_reward)


def _measure(parts: Sequence[Sequence[str]], weights: Sequence[object], part: str | None) -> tuple[list[str], str, str]:
    """(the parts that are compared, [] for the whole reward; what that is called; why it is not the reward)."""
    common = [name for name in parts[0] if name in parts[1]]
    if part is not None:
        if part not in common:
            raise BadInput(
                f"part={part!r:.80}: both runs have {', '.join(common) or 'no part of the reward'}.",
                "Choose one of these",
            )
        return [part], part, ""
    if parts[0] == parts[1] and weights[0] == weights[1]:
        return [], "reward", ""
    if parts[0] == parts[1]:
        why = f"The rewards weigh their parts differently ({weights[0]} and {weights[1]})"
    else:
        one, two = (" + ".join(own) or "one number" for own in parts)
        why = f"The rewards are made of different parts ({one} in one run, {two} in the other)"
    if common:
        return common, " + ".join(common), f"{why}: {' + '.join(common)}, which both have, is compared."
    return [], _SOLVED, f"{why} and have none in common: the share of solved rollouts is compared."
