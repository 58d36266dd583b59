"""One open rollout: its turns are written as they arrive, its own row at the end of the block."""

from __future__ import annotations

import time

from rollbook.capture.rollouts.batch import Turns, step_back, version_of, write_rollouts
from rollbook.capture.rollouts.rows import number, reported
from rollbook.system.guard import handled_by
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any, Self

    from rollbook.capture.rollouts.rows import Columns, RolloutRows

_STATUSES = ("completed", "truncated", "aborted", "failed")


class OpenRollout:
    """One open rollout. `run.rollouts.begin` returns it; the end of its block ends it.

    One thread at a time. Nothing here raises into training; values that cannot be stored are counted.

    Attributes:
      id: its id, a text, unique in the run. Pass it to `trained` and `dropped`, in this process or another one.
    """

    def __init__(self, rows: RolloutRows, rollout_id: str) -> None:
        self._rows, self.id = rows, rollout_id
        self._columns: dict[str, Any] = {}
        self._totals: dict[str, float] = {}
        self._rewards: dict[str, object] = {}
        self._last: Columns = {}
        self._turns = self._tokens = 0
        self._version: int | None = None
        self._version_end: int | None = None
        self._newest: int | None = None
        self._back: tuple[int, int] | None = None
        self._ended = False
        self._started, self._began = time.time(), time.monotonic()

    def __repr__(self) -> str:
        return f"<OpenRollout {self.id}: {amount(self._turns, 'turn')}>"

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
        """Store the data known at the start; for `RolloutLog`."""
        first, last = version if isinstance(version, (tuple, list)) and len(version) == 2 else (version, None)
        self._version, self._version_end = version_of(self._rows, first), version_of(self._rows, last)
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
        """Append one turn, generated or received. Its row is safe when this returns.

        Args:
          role: "assistant", "tool", "user", …
          text: the text, of any length; above 256 KiB the whole text is stored in a separate file.
          name: the tool that answers.
          calls: the tool calls of the model, as plain data.
          tokens: the token ids, a list or array (stored in `tokens`), or only their number.
          logprobs: of the engine that generated; one number per token, like `entropy` and `mask` (loss mask).
          entropy: of the distribution from which each token was sampled, in nats.
          mask: 1 for each token that is trained on.
          trained: whether the turn is trained on; by default true for turns of the assistant.
          policy_version: the version that generated it; by default that of the rollout.
          seconds: its duration.
          finish_reason: why the engine stopped, such as "stop" or "length".
          error: a failure, as text or exception; None without one.
          reward: the reward of this turn alone.
          parent: the number of the preceding turn, if it is not the previous one.
          columns: further columns of your own.
        Returns:
          The number of the turn, from 0.
        """
        number_of_turn = self._turns
        self._turns = number_of_turn + 1
        given = {
            **columns,
            "role": role,
            "text": text,
            "name": name,
            "calls": calls,
            "tokens": tokens,
            "logprobs": logprobs,
            "entropy": entropy,
            "mask": mask,
            "trained": trained,
            "policy_version": policy_version,
            "seconds": seconds,
            "finish_reason": finish_reason,
            "error": error,
            "reward": reward,
            "parent_turn": parent,
        }
        with handled_by(reported, self._rows.run, "turn()"):
            turns = Turns(self._rows)
            known = {column: [value] for column, value in given.items() if value is not None}
            turns.write([self.id], [number_of_turn], [self._version], known, self._tokens)
            self._take(turns)
        return number_of_turn

    def _take(self, turns: Turns) -> None:
        """Add a turn's contribution to the row of the rollout."""
        for name, (value,) in turns.totals.items():
            self._totals[name] = self._totals.get(name, 0) + value
        reading = None if turns.readings is None else turns.readings[0]
        if reading is not None:
            self._back = self._back or step_back((self._version, self._newest, reading))
            self._newest = reading
            self._version = reading if self._version is None else self._version
            self._version_end = max(reading, self._version_end or reading)
        self._tokens += (turns.tokens or [0])[0] or 0
        if turns.roles == ["assistant"] and turns.texts:
            self._last = {"item" if name == "text" else name: cells for name, cells in turns.texts.items()}

    def reward(self, total: float | None = None, /, **parts: float | None) -> None:
        """Set the reward that the trainer uses.

        Args:
          total: the reward; by default the sum of the parts, or none while a part is None.
          parts: rewards by name, columns `rewards/<name>`. Several calls fill one row; the later value wins.
        """
        self._rewards.update(parts)
        if total is not None:
            self._columns["reward"] = total

    def stop(self, reason: str | None = None, *, status: str | None = None, **columns: object) -> None:
        """Report why the rollout ended, and any other data known then.

        Args:
          reason: the engine's or environment's own word: "eos", "length", "tool limit", …
          status: "completed", "truncated", "aborted" or "failed"; by default "truncated" if the reason is a length
            limit, else "completed".
          columns: further columns, such as `prompt_tokens=120`, `seconds={"reward": 0.2}`, `metrics={"pass": 1}`.
        """
        if status is not None and status not in _STATUSES:
            self._rows.refused("status", status, f"one of {', '.join(_STATUSES)}")
            status = None
        timing = columns.pop("seconds", None)
        if isinstance(timing, dict):
            parts = {f"seconds/{name}": number(value) for name, value in timing.items()}
            self._totals.update({name: value for name, value in parts.items() if value is not None})
        elif timing is not None:
            columns["seconds"] = timing
        self._columns.update(columns)
        self._columns.update({"stop_reason": reason, "status": status or self._columns.get("status")})

    def end(self) -> None:
        """Write the row of the rollout; the end of the block calls it. Later calls do nothing."""
        if self._ended:
            return
        self._ended = True
        with handled_by(reported, self._rows.run, "the end of a rollout"):
            parts = {f"rewards/{name}": value for name, value in self._rewards.items()}
            own = {name: value for name, value in self._columns.items() if value is not None}
            columns = {**self._totals, **parts, **own, "rollout_id": self.id, "turns": self._turns}
            cells = {name: [value] for name, value in columns.items()}
            write_rollouts(self._rows, cells, self._last, [self._version], [self._version_end], [self._back])
            if self._tokens:
                self._rows.remember_length(self.id, self._tokens)
