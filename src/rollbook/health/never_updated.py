"""Updates that do not come."""

from __future__ import annotations

from rollbook.health._config import number_in
from rollbook.health._pace import COPIES, Pace, PaceRule
from rollbook.schema.aliases import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rollbook.schema.columns import Columns
    from rollbook.schema.records import Alert, RunInfo

_STARTS = ("learning_starts", "learning_start", "start_steps", "update_after", "random_steps")
_ROLLOUT, _SHORTEST = ("n_steps", "num_steps", "rollout_length"), 5
_NO_UPDATES = frozenset({
    "charts", "collect", "counted", "counter", "env", "episode", "epsilon", "eval", "evaluation", "exploration", "fps",
    "host", "num", "perf", "progress", "rollbook", "rollout", "rollouts", "sampler", "system", "test", "time", "timer",
    "timers", "timing",
})  # fmt: skip
"""A key whose first or last part begins with one of these words is not about updates."""
_REPLAY = ("buffer_size", "replay_size", "replay_capacity", "memory_size")
"""With a replay buffer, a setting of this name is about n-step returns."""


class _Updates(Pace):
    """Also whether a key of unknown meaning came that may be about updates."""

    unknown: bool = False


class NeverUpdated(PaceRule[_Updates]):
    """Episodes continue while no update is logged: "warn".

    After twice the longest gap between two updates so far and 3 % of the run; after the first update, a quarter of the
    run and twice the time that it took. If none was ever logged and the
    configuration has a learning rate (so the run should learn): 3 % of the run after the configured warm-up
    (`learning_starts`), or after the first rollout (`n_steps` times `n_envs`) and at least one more. If the
    configuration has neither: after a quarter of the run. Not while the run logs keys of unknown meaning: your own
    loop may log its updates as `td` or `train/my_loss`.
    """

    remembers = _Updates
    name = "never_updated"
    times, least, fewest, never, needed = 2.0, 0.03, 200, 0.25, 10
    source = "rollbook's own: a training logs what its updates did"

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._first = self._first_update()
        self._may_be: dict[str, bool] = {}

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        for key in () if self.memory.unknown else columns.keys("metrics"):
            if self._may_be.setdefault(key, _may_be_of_updates(key)):
                self.memory.unknown = True
        return super().look(columns, now)

    def _first_update(self) -> float | None:
        """By when an update should have come, in environment steps; None if that is not in the configuration."""
        starts = number_in(self.run.config, *_STARTS)
        if starts is not None:
            return starts + max(self.least * self._total, self.fewest)
        steps = number_in(self.run.config, *_ROLLOUT)
        if steps is None or steps < _SHORTEST or number_in(self.run.config, *_REPLAY) is not None:
            return None
        rollout = steps * (number_in(self.run.config, *COPIES) or 1.0)
        return rollout + max(self.least * self._total, rollout)

    def _limit(self) -> float | None:
        if not self.memory.n and self._first is not None and self._total:
            return self._first
        limit, last = super()._limit(), self.memory.last
        if limit is not None and last > 0 and not self.memory.gap:  # one update so far: the next may take as long
            limit = max(limit, last + self.times * last)
        return limit

    def is_it(self, name: str) -> bool:
        """See `PaceRule`."""
        return name.startswith("update/")

    def is_other(self, name: str) -> bool:
        """See `PaceRule`."""
        return name in ("train/return", "train/length")

    def speak(self, since: int, now: int) -> str:
        """See `PaceRule`."""
        if since < 0:
            if self.memory.unknown or number_in(self.run.config, "learning_rate", "lr") is None:
                return ""
            return (
                f"no update was logged in {now:,} environment steps: usually the warm-up is longer than the run, or "
                "the function that learns is not called"
            )
        return (
            f"no update was logged since env_step {since:,}, in {now - since:,} environment steps; the longest "
            f"stretch before was {self.memory.gap:,}: the policy is not trained any more; look "
            "whether the function that learns is still called"
        )


def _may_be_of_updates(key: str) -> bool:
    """Whether a key of unknown meaning may be about updates."""
    parts = key.split("/")
    return describe(key) is None and _NO_UPDATES.isdisjoint(part.partition("_")[0] for part in (parts[0], parts[-1]))
