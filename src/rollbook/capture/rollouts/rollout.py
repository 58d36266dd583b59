"""One rollout while it is made: its turns are written as they come, its own row at the end of the block."""

from __future__ import annotations

import time

from rollbook.capture.rollouts.rows import number, numbers, reported
from rollbook.errors import LoggingFailed
from rollbook.ground.clocks import as_clock
from rollbook.ground.foreign import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, Self

    from rollbook.capture.rollouts.rows import RolloutRows, Row

__all__ = ["OpenRollout"]

_CUT_SHORT = frozenset(("length", "max_tokens", "max_length", "max_turns", "truncated", "overlong"))
_STATUSES = ("completed", "truncated", "aborted", "failed")


class OpenRollout:
    """One rollout that is being made; `run.rollouts.begin` gives it, and its block ends it.

    One thread at a time. Nothing here raises into training; what cannot be kept is counted.

    Attributes:
      id: its id, text, unique in the run: hand it to `trained` and `dropped`, in this process or another one.
    """

    def __init__(self, rows: RolloutRows, rollout_id: str, put: Callable[[str, Row], None]) -> None:
        self._rows, self.id, self._put = rows, rollout_id, put
        self._columns: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        self._rewards: dict[str, object] = {}
        self._last: dict[str, Any] = {}
        self._turns = 0
        self._version: int | None = None
        self._version_end: int | None = None
        self._ended = False
        self._started, self._began = time.time(), time.monotonic()

    def __repr__(self) -> str:
        return f"<OpenRollout {self.id}: {self._turns} turns>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        if err is not None:
            self._columns["status"] = "failed" if isinstance(err, Exception) else "aborted"
            self._columns["error"] = f"{type(err).__name__}: {err}"
        self._columns.setdefault("started", self._started)
        self._columns.setdefault("seconds", time.monotonic() - self._began)
        self.end()

    def begin(self, version: object, columns: Mapping[str, object]) -> None:
        """Take in what is known at the start; for `RolloutLog`."""
        first, last = version if isinstance(version, (tuple, list)) and len(version) == 2 else (version, None)
        self._version, self._version_end = self._version_of(first), self._version_of(last)
        self._columns.update(columns)

    def turn(
        self,
        role: str,
        text: object = None,
        *,
        name: str | None = None,
        calls: object = None,
        tokens: Any = None,
        logprobs: object = None,
        entropy: object = None,
        mask: object = None,
        trained: bool | None = None,
        policy_version: int | None = None,
        seconds: float | None = None,
        finish_reason: str | None = None,
        error: object = None,
        reward: float | None = None,
        parent: int | None = None,
        **columns: object,
    ) -> int:
        """Append one turn, what was generated or what came back; its row is safe when this returns.

        Args:
          role: "assistant", "tool", "user", …
          text: what was written, at any length: of more than 256 KiB the whole lies in a file of its own.
          name: of the tool that answers.
          calls: the tool calls that the model made, as plain data.
          tokens: the ids of its tokens, a list or array (kept in `tokens`), or only how many there are.
          logprobs: by the engine that generated; one number a token, as `entropy` and `mask` (loss mask).
          entropy: of the distribution that each token was drawn from, in nats.
          mask: 1 for each token that is trained on.
          trained: whether the turn is trained on; by default what the assistant wrote is.
          policy_version: that generated it; by default that of the rollout.
          seconds: how long it took.
          finish_reason: why the engine stopped, such as "stop" or "length".
          error: what went wrong, a text or an exception; None if nothing did.
          reward: of this turn alone.
          parent: the number of the turn that it follows, where that is not the one before.
          columns: further columns of yours.
        Returns:
          The number of the turn, from 0.
        """
        number_of_turn = self._turns
        self._turns = number_of_turn + 1
        try:
            self._turn(
                number_of_turn,
                {
                    **columns,
                    "role": role,
                    "name": name,
                    "seconds": seconds,
                    "finish_reason": finish_reason,
                    "error": _error(error),
                    "reward": reward,
                    "parent_turn": parent,
                    "trained": role == "assistant" if trained is None else trained,
                },
                text,
                calls,
                tokens,
                {"sampler_logprobs": logprobs, "entropy": entropy, "mask": mask},
                policy_version,
            )
        except LoggingFailed:
            raise
        except ours(Exception) as err:
            reported(self._rows.run, "turn()", err)
        return number_of_turn

    def _turn(
        self, turn: int, columns: dict[str, Any], text: object, calls: object, tokens: Any,
        lists: dict[str, object], version: object,
    ) -> None:  # fmt: skip
        rows = self._rows
        if columns["role"] == "assistant" and text is not None:
            self._last = rows.text("item", text)
            written = {"text": self._last["item"], **{n: cell for n, cell in self._last.items() if n != "item"}}
        else:
            written = rows.text("text", text)
        if calls is not None:
            columns["calls"] = rows.json("calls", calls)
            self._add("tool_calls", len(calls) if isinstance(calls, (list, tuple)) else 1)
        if columns["role"] == "tool" and columns["error"] is not None:
            self._add("tool_errors", 1)
        seconds = number(columns["seconds"]) if columns["seconds"] is not None else None
        part = {"assistant": "seconds/model", "tool": "seconds/tools"}.get(str(columns["role"]))
        if seconds is not None and part is not None:
            self._seconds[part] = self._seconds.get(part, 0.0) + seconds
        reading = self._version_of(version)
        if reading is not None:
            self._version = reading if self._version is None else self._version
            self._version_end = max(reading, self._version_end or reading)
        columns["policy_version"] = self._version if reading is None else reading
        columns["tokens"] = self._tokens(turn, columns, tokens, lists)
        cells, clocks = rows.cells("turns", {**columns, "rollout_id": self.id, "turn": turn})
        cells |= written
        self._put("turns", (cells, clocks))

    def _tokens(self, turn: int, columns: Mapping[str, Any], tokens: Any, lists: dict[str, object]) -> int | None:
        """How many tokens a turn has; writes those that were given."""
        ids = numbers(tokens) if tokens is not None else None
        n = len(ids) if ids is not None else as_clock(tokens) if tokens is not None else None
        if tokens is not None and n is None:
            self._rows.refused("tokens", tokens, "a list of ids, or how many there are")
        kept = {"ids": ids} if ids is not None else {}
        for name, value in lists.items():
            if value is None:
                continue
            cells = numbers(value)
            if cells is None:
                self._rows.refused(name, value, "a list of one number a token")
            elif n is not None and len(cells) != n:
                self._rows.run.count(
                    "rollout_columns",
                    1,
                    f"run.rollouts: turn({name}=…) has {len(cells)} numbers for {n} tokens; it was left out",
                )
            else:
                kept[name] = cells
                n = len(cells)
        if kept:
            row, clocks = self._rows.cells("tokens", {"rollout_id": self.id, "turn": turn, **kept})
            row["first"] = self._counts.get("all", 0)
            self._put("tokens", (row, clocks))
        if n is not None:
            mask = kept.get("mask")
            sampled = n * bool(columns["trained"]) if mask is None else sum(bool(cell) for cell in mask)
            self._add("all", n)
            self._add("sampled_tokens", sampled)
            self._add("other_tokens", n - sampled)
        return n

    def _add(self, name: str, n: int) -> None:
        self._counts[name] = self._counts.get(name, 0) + n

    def reward(self, total: float | None = None, /, **parts: float | None) -> None:
        """Set the reward as the trainer uses it.

        Args:
          total: the reward; by default the sum of the parts, and none while a part is None.
          parts: rewards by name, columns `rewards/<name>`. Several calls add up to one row, the later value wins.
        """
        self._rewards.update(parts)
        if total is not None:
            self._columns["reward"] = total

    def stop(self, reason: str | None = None, *, status: str | None = None, **columns: object) -> None:
        """Report why the rollout ended, and anything that is known by then.

        Args:
          reason: the engine's or environment's own word: "eos", "length", "tool limit", …
          status: "completed", "truncated", "aborted" or "failed"; by default truncated where the reason is a limit of
            length, else completed.
          columns: further columns, such as `prompt_tokens=120`, `seconds={"reward": 0.2}`, `metrics={"pass": 1}`.
        """
        if status is not None and status not in _STATUSES:
            self._rows.refused("status", status, f"one of {', '.join(_STATUSES)}")
            status = None
        timing = columns.pop("seconds", None)
        if isinstance(timing, dict):
            parts = {f"seconds/{name}": number(value) for name, value in timing.items()}
            self._seconds.update({name: value for name, value in parts.items() if value is not None})
        elif timing is not None:
            columns["seconds"] = timing
        self._columns.update(columns)
        self._columns.update({"stop_reason": reason, "status": status or self._columns.get("status")})

    def end(self) -> None:
        """Write the row of the rollout; the end of the block calls it. Later calls do nothing."""
        if self._ended:
            return
        self._ended = True
        try:
            self._put("rollouts", self._row())
        except LoggingFailed:
            raise
        except ours(Exception) as err:
            reported(self._rows.run, "the end of a rollout", err)

    def _row(self) -> Row:
        columns = {name: value for name, value in self._columns.items() if value is not None}
        reason = columns.get("stop_reason")
        columns.setdefault("status", "truncated" if reason in _CUT_SHORT else "completed")
        columns |= {f"rewards/{name}": value for name, value in self._rewards.items()}
        parts = [None if value is None else number(value) for value in self._rewards.values()]
        known = [part for part in parts if part is not None]
        if "reward" not in columns and known and len(known) == len(parts):
            columns["reward"] = sum(known)
        counts = {name: n for name, n in self._counts.items() if name != "all"}
        columns = {**self._seconds, **counts, **columns, "rollout_id": self.id, "turns": self._turns}
        end = self._version if self._version_end is None else self._version_end
        if end is not None and self._version is not None and end < self._version:
            self._rows.run.count(
                "rollout_version",
                1,
                f"run.rollouts: a rollout began with policy_version {self._version} and ended with {end}, an older "
                "one; both were kept as given",
            )
        cells, clocks = self._rows.cells(
            "rollouts", {**columns, "policy_version": self._version, "policy_version_end": end}
        )
        return cells | self._last, clocks

    def _version_of(self, value: object) -> int | None:
        version = None if value is None else as_clock(value)
        if value is not None and version is None:
            self._rows.refused("policy_version", value, "a clock, which takes an integer")
        return version


def _error(error: object) -> str | None:
    if error is None or isinstance(error, str):
        return error
    return f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error)
