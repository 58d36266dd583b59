"""Updates that do not come."""

from __future__ import annotations

from rollbook.health._config import number_in
from rollbook.health._pace import PaceRule

__all__ = ["NeverUpdated"]


class NeverUpdated(PaceRule):
    """Episodes that go on while no update is logged: "warn".

    After three times the longest stretch between two updates so far and a 25th of the run. Where none was ever logged,
    after a quarter of the run, and if the configuration has a learning rate: then something was to be learned.
    """

    name = "never_updated"
    times, least, fewest, never, needed = 3.0, 0.04, 200, 0.25, 20
    source = "rollbook's own: a training logs what its updates did"

    def is_it(self, name: str) -> bool:
        """See `PaceRule`."""
        return name.startswith("update/")

    def is_other(self, name: str) -> bool:
        """See `PaceRule`."""
        return name in ("train/return", "train/length")

    def speak(self, since: int, now: int) -> str:
        """See `PaceRule`."""
        if since < 0:
            if number_in(self.run.config, "learning_rate", "lr") is None:
                return ""
            return (
                f"no update was logged in {now:,} environment steps: usually the warm-up is longer than the run, or "
                "the function that learns is not called"
            )
        return (
            f"no update was logged since env_step {since:,}, in {now - since:,} environment steps; the longest "
            f"stretch before was {self.memory['gap']:,}: the policy is not trained any more"
        )
