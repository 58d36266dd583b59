"""Rollouts of language models and agents, and later the fate of each.

    with run.rollouts.begin(task=prompt, group="12-3", policy_version=7) as rollout:
        rollout.turn("assistant", text, tokens=ids, logprobs=logprobs, seconds=0.8)
        rollout.turn("tool", result, name="python", error=None)
        rollout.reward(accuracy=1.0, format=0.2)
        rollout.stop("eos")
    run.rollouts.trained([rollout.id], advantage=[0.7], trained_version=8, gradient_step=120)

Rollouts are rows of `rollouts`, `turns` and `tokens`; prompts are rows of `tasks`, and fates rows of `fates`. Rows are
never rewritten. Later data may come from another process.
"""

from __future__ import annotations

import itertools
import os
import re

from rollbook.capture.batch_columns import BatchColumns, is_column
from rollbook.capture.rollouts.batch import LISTS, Turns, step_back, version_of, write_rollouts
from rollbook.capture.rollouts.messages import conversation, task_of, turns_of
from rollbook.capture.rollouts.rollout import OpenRollout
from rollbook.capture.rollouts.rows import RolloutRows, new_prefix, numbers, reported
from rollbook.schema import manifest
from rollbook.system.guard import handled_by
from rollbook.values import flatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from rollbook.capture.rollouts.rows import Columns
    from rollbook.protocols import Recorder

_ID = re.compile(r"[0-9a-f]{10}-([0-9]+)")
_LATE_LISTS = ("sampler_logprobs", "trainer_logprobs", "entropy", "advantages", "mask")
_OF_A_TURN = ("tokens", *LISTS)
_OF_A_TASK = ("task_id", "env", "tools")
_MOST_USES = 30_000
"""Reported uses that are remembered, at least; about 2 MB."""
_SPELLED = {"content": "text", "tool_calls": "calls", "parent": "parent_turn"}
_OURS = frozenset(("text", "calls", "rollout_id", "turn"))


class RolloutLog:
    """The rollouts of a run, written by this process: `run.rollouts`.

    Threads: every method may be called from any number of threads. Nothing raises into training unless the run is
    strict. Values that cannot be stored are counted (`run.bill()`), and the rest is stored.

    Args:
      run: the run of the rollouts.
    """

    def __init__(self, run: Recorder) -> None:
        self._run = run
        self._rows = RolloutRows(run)
        self._pid = 0
        self._prefix = ""
        self._numbers = itertools.count()
        self._given = 0
        self._uses: tuple[set[int], set[int]] = (set(), set())

    def _new_id(self) -> str:
        if self._pid != os.getpid():  # also in a forked child
            self._prefix, self._numbers, self._pid = new_prefix(), itertools.count(), os.getpid()
        number = next(self._numbers)
        self._given = max(self._given, number + 1)
        return f"{self._prefix}-{number}"

    def begin(
        self,
        task: object = None,
        *,
        task_id: str | None = None,
        group: object = None,
        policy_version: object = None,
        env: str | None = None,
        tools: object = None,
        **columns: object,
    ) -> OpenRollout:
        """Begin a rollout. Use it as a context manager: the end of the block ends the rollout, also after an exception.

        Args:
          task: the prompt: a text, or the messages so far. Stored once, even if many rollouts begin with it.
          task_id: the data set's own id of the task; by default 16 hexadecimal digits of its content.
          group: rollouts that are judged against each other; a name that no other batch uses.
          policy_version: the version that generates, or (first, last).
          env: the environment or data set of the task.
          tools: the tools that the model may call, as plain data.
          columns: clocks, and further columns of `rollouts`: `mode`, `batch`, `agent`, `episode_id`, `temperature`, ….
        Returns:
          The rollout. If the block raises, its status is "failed" ("aborted" if it is not an `Exception`), its error
          has the reason, and the exception passes through.
        """
        rollout = OpenRollout(self._rows, self._new_id())
        with handled_by(reported, self._run, "begin()"):
            known = {"task_id": self._rows.task(task, task_id, env, tools), "group": group}
            rollout.begin(policy_version, {**columns, **known})
        return rollout

    def log_many(
        self,
        messages: Iterable[object] | None = None,
        *,
        prompts: Iterable[object] | None = None,
        completions: Iterable[object] | None = None,
        rewards: object = None,
        reward: object = None,
        group: object = None,
        policy_version: object = None,
        **columns: object,
    ) -> list[str]:
        """Append a batch of whole rollouts.

        Args:
          messages: one conversation each, a list of {"role", "content", "tool_calls", "name", …}. The messages before
            the first one of the assistant are the task. A message may also have arguments of `turn`: `tokens`,
            `logprobs`, `policy_version`, `seconds`, `finish_reason`, `error`, `reward`, `trained`.
          prompts: instead of messages: the task of each, a text or a list of messages.
          completions: with prompts: the rest of each, a text or a list of messages.
          rewards: {name: n numbers}, columns `rewards/<name>`, or n numbers, the reward.
          reward: n numbers; by default the sum of the parts.
          group: one per rollout, or one for all; the same applies to the arguments below.
          policy_version: the version that generated; (first, last) if it changed during the rollout.
          columns: clocks, further columns of `rollouts` (`stop_reason`, `status`, `task_id`, `metrics={…}`), and
            `tokens`, `logprobs`, `entropy`, `mask` of the assistant's last turn. A column of another length is cut or
            filled, and counted.
        Returns:
          Their ids, in order; [] if the batch could not be stored (counted).
        """
        with handled_by(reported, self._run, "log_many()"):
            return self._log_many(messages, prompts, completions, rewards, reward, group, policy_version, columns)
        return []

    def _log_many(
        self,
        messages: Any,
        prompts: Any,
        completions: Any,
        rewards: Any,
        reward: object,
        group: object,
        version: object,
        columns: Mapping[str, object],
    ) -> list[str]:
        if messages is None:
            texts = list(completions if completions is not None else ())
            n = len(texts)
            given = self._column("log_many", "prompts", None if prompts is None else list(map(task_of, prompts)), n)
            talks = [(prompt, turns_of(text)) for prompt, text in zip(given, texts, strict=True)]
        else:
            talks = [conversation(talk) for talk in messages]
            n = len(talks)
        if not n:
            return []
        cells: dict[str, Any] = {**columns, "group": group, "reward": reward}
        if hasattr(rewards, "items"):
            cells["rewards"] = rewards
        elif rewards is not None and reward is None:
            cells["reward"] = rewards
        by_name = self._by_name("log_many", cells, n)
        first, last = version if isinstance(version, tuple) and len(version) == 2 else (version, None)
        bounds = [self._column("log_many", "policy_version", bound, n) or [None] * n for bound in (first, last)]
        firsts, lasts = ([version_of(self._rows, value) for value in bound] for bound in bounds)
        ids = [self._new_id() for _ in range(n)]
        by_name["task_id"] = self._tasks([task for task, _turns_of_task in talks], by_name)
        lists = {name: by_name.pop(name) for name in _OF_A_TURN if name in by_name}
        turns = [turns_of_task for _task, turns_of_task in talks]
        more, items, backs = self._turns(ids, turns, lists, firsts, lasts)
        for name, totals in more.items():
            own = by_name.get(name)
            by_name[name] = totals if own is None else [b if a is None else a for a, b in zip(own, totals, strict=True)]
        by_name |= {"rollout_id": ids, "turns": list(map(len, turns))}
        write_rollouts(self._rows, by_name, items, firsts, lasts, backs)
        return ids

    def _tasks(self, tasks: list[object], by_name: Columns) -> list[str | None]:
        """The task id of each; removes the columns that belong to the task."""
        more = [by_name.pop(name) if name in by_name else [None] * len(tasks) for name in _OF_A_TASK]
        found: list[str | None] = []
        before: tuple[object, ...] = ()
        for given in zip(tasks, *more, strict=True):
            same = before and all(a is b or (type(a) is str and a == b) for a, b in zip(given, before, strict=True))
            found.append(found[-1] if same else self._rows.task(*given))
            before = given
        return found

    def _turns(
        self, ids: list[str], talks: list[list[dict[str, Any]]], lists: Columns, firsts: list[Any], lasts: list[Any]
    ) -> tuple[Columns, Columns, list[tuple[int, int] | None]]:
        """Write the turns of each rollout; returns (their contribution to its columns, the columns of its last text,
        where its versions go back).

        `lists` belong to its last turn of the assistant; `firsts` and `lasts` are filled from the turns.
        """
        bounds = [0, *itertools.accumulate(map(len, talks))]
        if not bounds[-1]:
            return {}, {}, [None] * len(ids)
        spans = list(itertools.pairwise(bounds))
        # The turns of all rollouts are one batch; `spoken`: the rows of each rollout that are the assistant's.
        messages = list(itertools.chain.from_iterable(talks))
        spoken = [[row for row in range(*span) if messages[row].get("role") == "assistant"] for span in spans]
        owners = list(itertools.chain.from_iterable(map(itertools.repeat, ids, map(len, talks))))
        versions = list(itertools.chain.from_iterable(map(itertools.repeat, firsts, map(len, talks))))
        numbers = list(itertools.chain.from_iterable(map(range, map(len, talks))))
        turns = Turns(self._rows)
        turns.write(owners, numbers, versions, _turn_columns(messages, lists, spoken))
        # Back from turns to rollouts: versions, then sums of numbers, then the last text.
        backs = _fill_versions(turns.readings, spans, firsts, lasts)
        sums: Columns = {name: [_added(cells[slice(*span)]) for span in spans] for name, cells in turns.totals.items()}
        if turns.tokens is not None:
            for name, span in zip(ids, spans, strict=True):
                self._rows.remember_length(name, sum(k or 0 for k in turns.tokens[slice(*span)]))
        return sums, _last_texts(turns.texts, spoken), backs

    # -- what becomes of them

    def trained(
        self,
        ids: object,
        *,
        advantage: object = None,
        trained_version: object = None,
        gradient_step: int | None = None,
        **columns: object,
    ) -> None:
        """Report that rollouts were trained on. Any process of the run may call this.

        Args:
          ids: the ids of the rollouts, a list or one id.
          advantage: n numbers, or one for all; the same applies to the arguments below.
          trained_version: the version that the update changes. Readers show its distance to the version that generated
            as `staleness`.
          gradient_step: the clock of the update.
          columns: further columns of `fates` (`ratio_mean`, `ratio_max`, `clipped`, `gap_mean`, `gap_max`, `kl`,
            `weight`, `epoch`, `in_queue`, …). Lists for each rollout (`trainer_logprobs`, `sampler_logprobs`,
            `entropy`, `advantages`, `mask`: one number per token of the whole rollout) go to `tokens`. Without
            `gap_max`, the gaps are computed from the trainer's and the sampler's log-probabilities; the latter may
            be given here or have been recorded by this process lately.
        """
        more = {"advantage": advantage, "trained_version": trained_version, "gradient_step": gradient_step}
        self._fate("trained", ids, {**columns, **more, "used": True})

    def dropped(self, ids: object, *, reason: object = None, **columns: object) -> None:
        """Report that rollouts were not trained on.

        Args:
          ids: the ids of the rollouts, a list or one id.
          reason: the reason, per rollout or for all: zero_std, stale, overlong, error, unscorable, surplus, cancelled,
            or a name of your own.
          columns: further columns of `fates`, and clocks.
        """
        self._fate("dropped", ids, {**columns, "reason": reason, "used": False})

    def _fate(self, verb: str, ids: Any, columns: dict[str, object]) -> None:
        with handled_by(reported, self._run, f"{verb}()"):
            names = [str(name) for name in (ids if is_column(ids) else [ids])]
            if not names:
                return
            self._look_at(verb, names)
            by_name = self._by_name(verb, columns, len(names))
            late = {name: by_name.pop(name) for name in _LATE_LISTS if name in by_name}
            cells, clocks = self._rows.columns("fates", {**by_name, "rollout_id": names})
            self._measure(verb, names, cells, clocks)
            self._compare(verb, names, {**cells, **clocks})
            some = [row for row in range(len(names)) if any(column[row] is not None for column in late.values())]
            chosen = {name: [column[row] for row in some] for name, column in {**late, "rollout_id": names}.items()}
            lists, _none = self._rows.columns("tokens", chosen) if some else ({}, {})
            self._measure_gaps(some, lists, cells)
            self._rows.write("fates", cells, clocks, len(names))
            if some:
                self._measure_lists(verb, chosen["rollout_id"], lists)
                own = {name: [column[row] for row in some] for name, column in clocks.items()}
                self._rows.write("tokens", lists, own, len(some))

    def _measure(self, verb: str, names: list[str], cells: Columns, clocks: Columns) -> None:
        """Compute the staleness of fates with both versions given; readers join the others. Count those below 0, also
        if this process recorded the rollout lately."""
        versions, trained = clocks.get("policy_version"), cells.get("trained_version")
        ages = list(cells.get("staleness") or [None] * len(names))
        if versions is not None and trained is not None:
            for row, (version, later) in enumerate(zip(versions, trained, strict=True)):
                if ages[row] is None and version is not None and later is not None:
                    ages[row] = later - version
        if ages.count(None) < len(ages):
            cells["staleness"] = ages
        for name, age, later in zip(names, ages, trained or [None] * len(names), strict=True):
            if age is None and later is not None and (version := self._rows.version(name)) is not None:
                age = later - version
            if age is not None and age < 0:
                self._run.count(
                    "rollout_version",
                    1,
                    f"run.rollouts.{verb}(): rollout {name} has the staleness {age}: it was trained by an older "
                    "version than the one that generated it; both were kept as given",
                )

    def _measure_gaps(self, some: list[int], lists: Columns, cells: Columns) -> None:
        """Compute `gap_mean` and `gap_max` of fates that came without, if the lists of sampler and trainer are known.

        Args:
          some: the rows that have lists.
        """
        names = cells["rollout_id"]
        given = [lists.get(name) or [None] * len(some) for name in ("trainer_logprobs", "sampler_logprobs", "mask")]
        reported = cells.get("gap_max") or [None] * len(names)
        for row, trainer, sampler, mask in zip(some, *given, strict=True):
            gaps = None
            if trainer is not None and reported[row] is None:
                gaps = self._rows.gap(names[row], trainer, sampler, mask)
            for name, gap in zip(("gap_mean", "gap_max"), gaps or (), strict=False):
                column = cells.setdefault(name, [None] * len(names))
                column[row] = gap if column[row] is None else column[row]

    def _measure_lists(self, verb: str, names: list[str], lists: Columns) -> None:
        """Count lists of another length than the tokens of their rollout, if this process recorded it."""
        for column, cells in lists.items():
            for name, cell in zip(names, cells, strict=True):
                n = self._rows.length(name)
                if column != "rollout_id" and cell is not None and n and len(cell) != n:
                    self._run.count(
                        "rollout_columns",
                        1,
                        f"run.rollouts.{verb}(): {column} of rollout {name} has {len(cell)} numbers for the {n} tokens "
                        "of its turns; it was kept, but readers cannot tell which numbers belong to which turn",
                    )

    def _compare(self, verb: str, names: list[str], columns: Columns) -> None:
        """Count uses that this process has reported before; of several processes only readers can know."""
        now = self._run.clocks_now()
        steps, epochs = (columns.get(name, [now.get(name)] * len(names)) for name in ("gradient_step", "epoch"))
        attempt = getattr(self._run, "attempt", 1)  # a rewind hides abandoned fates
        again = []
        for use in zip(names, steps, epochs, strict=True):
            if use[1] is None:
                continue
            known, mark = self._uses, hash((attempt, *use))
            if mark in known[0] or mark in known[1]:
                again.append(use)
            else:
                known[0].add(mark)
                if len(known[0]) >= _MOST_USES:
                    self._uses = (set(), known[0])
        if again:
            name, step, epoch = again[0]
            use_of = f"at gradient_step {step}" + ("" if epoch is None else f", epoch {epoch}")
            self._run.count(
                "rollout_fates",
                len(again),
                f"run.rollouts.{verb}(): rollout {name:.80} has two fates {use_of}; both were kept, and readers count "
                "the newest. If it was used twice in one update, pass epoch=",
            )

    def _look_at(self, verb: str, names: list[str]) -> None:
        """Count ids that no rollout can have. Only readers know whether an id of another process exists."""
        unknown = []
        for name in names:
            found = _ID.fullmatch(name)
            own = found is not None and self._pid == os.getpid() and name.startswith(f"{self._prefix}-")
            if found is None or (own and int(found[1]) >= self._given):
                unknown.append(name)
        if unknown:
            self._run.count(
                "unknown_rollout",
                len(unknown),
                f"run.rollouts.{verb}(): there is no rollout {unknown[0]!r:.80}; pass the ids that begin() and "
                "log_many() gave. What was reported of it is kept in the table fates",
            )

    # -- how much of them

    def keep(self, bytes: int) -> None:
        """Limit what the rollouts of the run take on disk. Beyond it the oldest lose token lists, then texts.

        Rows, rewards and fates stay, and so do evaluations, the best and the worst rollout of each update, the 100
        largest gaps, and the rollouts of an update with an alert. Each trimmed row has `trimmed`; run.json, `rollbook
        show` and the page state how many there are. Applies to all processes and attempts of the run, whenever its
        keeper seals. A value that is not a whole number from 1 on is counted and ignored.

        Args:
          bytes: of the Parquet files of the five tables, and of long texts.
        """
        if type(bytes) is not int or bytes < 1:
            self._rows.refused("keep(bytes=)", bytes, "a limit, which takes a whole number from 1 on")
            return
        with handled_by(reported, self._run, "keep()"):
            manifest.keep_retention(self._run.folder, {"keep_bytes": bytes})

    # -- columns

    def _by_name(self, verb: str, columns: Mapping[str, object], n: int) -> Columns:
        """{name: n values}, names of nested dicts joined with "/"."""
        flat = ((name, self._column(verb, name, value, n)) for name, value in flatten(columns) if value is not None)
        return {name: _listed(column) for name, column in flat if column is not None}

    def _column(self, verb: str, name: str, value: Any, n: int) -> Any:
        if value is None:
            return [None] * n
        if n == 1 and name in (*_LATE_LISTS, *_OF_A_TURN) and _is_one_list(value):
            value = [value]
        return BatchColumns(self._run, f"run.rollouts.{verb}", "rollout_columns").column(name, value, n)


def _turn_columns(messages: list[dict[str, Any]], lists: Columns, spoken: list[list[int]]) -> Columns:
    """A column for each field that any of the messages has, and the lists of the assistant's last turns."""
    columns: Columns = {
        _SPELLED.get(name, str(name)): [message.get(name) for message in messages]
        for name in dict.fromkeys(itertools.chain.from_iterable(messages))
        if name not in _OURS
    }
    for name, cells in lists.items():
        for index, rows in enumerate(spoken):
            if rows and name not in messages[rows[-1]]:
                columns.setdefault(name, [None] * len(messages))[rows[-1]] = cells[index]
    return columns


def _fill_versions(
    readings: list[Any] | None, spans: list[tuple[int, int]], firsts: list[Any], lasts: list[Any]
) -> list[tuple[int, int] | None]:
    """Fill the first and the newest version of each rollout from its turns; returns where its versions go back."""
    backs: list[tuple[int, int] | None] = [None] * len(spans)
    for index, span in enumerate(spans if readings is not None else ()):
        own = [reading for reading in (readings or ())[slice(*span)] if reading is not None]
        backs[index] = step_back([firsts[index], *own])
        if own:
            firsts[index] = own[0] if firsts[index] is None else firsts[index]
            lasts[index] = max([*own, *([] if lasts[index] is None else [lasts[index]])])
    return backs


def _last_texts(texts: Columns, spoken: list[list[int]]) -> Columns:
    """The columns of the last text that the assistant wrote in each rollout."""
    known = texts.get("text")
    last = [None if known is None else _newest(known, rows) for rows in spoken]
    items = {
        "item" if name == "text" else name: [None if row is None else cells[row] for row in last]
        for name, cells in texts.items()
    }
    return {name: cells for name, cells in items.items() if cells.count(None) < len(spoken)}


def _newest(texts: list[Any], rows: list[int]) -> int | None:
    """The last of these rows that has a text."""
    return next((row for row in reversed(rows) if texts[row] is not None), None)


def _listed(column: Any) -> list[Any]:
    """The cells of an array; for several axes, its rows."""
    return column.tolist() if getattr(column, "ndim", 0) == 1 else list(column)


def _added(cells: list[Any]) -> float | None:
    known = [cell for cell in cells if cell is not None]
    return sum(known) if known else None


def _is_one_list(value: Any) -> bool:
    """Whether a value is the list of a single rollout, not a list of lists."""
    cells = numbers(value)
    return cells is not None
