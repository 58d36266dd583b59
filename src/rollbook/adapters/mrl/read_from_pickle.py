"""What a log restored from a pickle uses instead of a run: memory only.

log.save("x.pkl"); again = torch.load("x.pkl", weights_only=False); again.metrics["rewards"][-1]; again.df
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from rollbook.errors import RollbookWarning

__all__ = ["SavedRun"]


class SavedRun:
    """Replaces the run of a pickled log: remembers which samples were seen, and writes nothing.

    Args:
      rewards: sample -> its first reward.
    """

    attempt = 0
    resumed = False

    def __init__(self, rewards: dict[object, object]) -> None:
        self.rewards = rewards
        self.samples = self.writer = self.internals = self
        self.clocks: tuple[str, ...] = ("step",)
        self._warned: set[str] = set()

    def is_seen(self, sample: object) -> bool:
        """Whether a sample has a reward."""
        try:
            return sample in self.rewards
        except TypeError:  # not hashable: identified by its content
            return repr(sample) in self.rewards

    def unique(self) -> int:
        """How many samples were seen."""
        return len(self.rewards)

    def scope(self, name: str) -> SavedRun:
        """The same object, for every scope."""
        del name
        return self

    def log(self, row: object, **clocks: object) -> None:
        """Warn once that nothing is recorded."""
        del row, clocks
        self.count(
            "mrl_no_run",
            message="this log was read from a pickle and has no run: it goes on in memory alone. Give the environment "
            "a new Log(run) to record",
        )

    def log_samples(self, samples: Sequence[object], **columns: Sequence[Any]) -> None:
        """Remembers the samples' first rewards."""
        rewards = columns.get("rewards")
        for place, sample in enumerate(samples):
            if not self.is_seen(sample):
                key = sample if sample.__hash__ is not None else repr(sample)
                self.rewards[key] = None if rewards is None else float(rewards[place])

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        """Report each cause once."""
        del n
        if message and cause not in self._warned:
            self._warned.add(cause)
            warnings.warn(message, RollbookWarning, stacklevel=4)
