"""Episodes that do not end."""

from __future__ import annotations

from rollbook.health._pace import PaceRule

__all__ = ["NoEpisode"]


class NoEpisode(PaceRule):
    """A training that goes on while no episode ends: "warn".

    After twice the longest gap between two ends so far and a 20th of the run. If none ever ended, after a tenth of the
    run, whose length must be known (`init(total=…)`).
    """

    name = "no_episode"
    times = 2.0
    source = "Stable-Baselines3 #1204, CleanRL #534 are of this kind; the multiples are rollbook's own"

    def is_it(self, name: str) -> bool:
        """See `PaceRule`."""
        return name in ("train/return", "train/length", "train/reward")

    def is_other(self, name: str) -> bool:
        """See `PaceRule`."""
        return name.startswith("update/")

    def speak(self, since: int, now: int) -> str:
        """See `PaceRule`."""
        if since < 0:
            return (
                f"no episode has ended in {now:,} environment steps: either none ends, or nobody logs returns; "
                "usually the time limit or a wrapper that reports episodes is missing"
            )
        return (
            f"no episode has ended since env_step {since:,}, in {now - since:,} environment steps; the longest "
            f"stretch before was {self.memory['gap']:,}: usually the time limit is missing, or the policy has found "
            "a state that never ends"
        )
