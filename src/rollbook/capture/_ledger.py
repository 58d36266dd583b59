"""The reward ledger: raw, shaped, clipped, normalised and final reward next to each other, per agent and component.

    ledger = RewardLedger(scope)
    env = ledger.stage(env, "raw")             # the reward of the game
    env = ClipReward(env)
    env = ledger.stage(env, "clipped")         # the reward after clipping
    env = RecordEpisodes(env, scope, ledger=ledger)    # ... and "final", the reward that the agent gets

Each episode gives one row of the `rewards` table per agent, component and stage. The ledger also checks that within a
stage and agent the components add up to the total at each step.
"""

from __future__ import annotations

import math

from rollbook.capture._rewards import read_reward
from rollbook.schema.alerts import Alerts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.protocols import Recorder

TOTAL = ""
"""The component that means the whole reward."""


class Tally:
    """Sum, minimum, maximum and count of a stream of numbers, and the sum of their magnitudes."""

    __slots__ = ("high", "low", "magnitude", "n", "total")

    def __init__(self) -> None:
        self.total, self.magnitude, self.n = 0.0, 0.0, 0
        self.low, self.high = math.inf, -math.inf

    def add(self, value: float) -> None:
        """Add one number. A NaN makes the sum NaN; minimum and maximum ignore it."""
        self.total += value
        self.magnitude += abs(value)
        self.n += 1
        if value < self.low:
            self.low = value
        if value > self.high:
            self.high = value

    @property
    def mean(self) -> float | None:
        """The mean, None without numbers."""
        return self.total / self.n if self.n else None

    @property
    def range(self) -> tuple[float | None, float | None]:
        """(minimum, maximum); None if no number could be compared."""
        return (
            self.low if self.low != math.inf or self.high == math.inf else None,
            self.high if self.high != -math.inf or self.low == -math.inf else None,
        )


class RewardLedger:
    """Keeps the rewards of one stream of episodes separate, by stage, agent and component.

    One ledger belongs to one `EpisodeRecorder` (one sub-environment). Not thread-safe.

    Args:
      recorder: gets an alert if sums do not add up; None: the check only returns its result.
      tolerance: the largest difference that counts as rounding, relative to the sum of the magnitudes.
    """

    most_alerts = 100

    def __init__(self, recorder: Recorder | None = None, *, tolerance: float = 1e-5) -> None:
        self._recorder, self.tolerance = recorder, tolerance
        self._tallies: dict[tuple[str, str, str], Tally] = {}
        self._alerts = None if recorder is None else Alerts(recorder, every=self.most_alerts)

    def __len__(self) -> int:
        return len(self._tallies)

    def __contains__(self, key: object) -> bool:
        return key in self._tallies

    def begin(self) -> None:
        """Begin an episode: reset the sums."""
        self._tallies = {}

    def enter(self, stage: str, reward: object) -> None:
        """`add` for wrappers: values that are not numbers are counted, not raised.

        Args:
          stage: "raw", "shaped", "clipped", "normalised", "final", or a name of your own.
          reward: as in `add`.
        """
        try:
            self.add(stage, reward)
        except (TypeError, ValueError) as err:
            if self._recorder is not None:
                self._recorder.count(
                    "reward_ledger_odd",
                    1,
                    f"the reward {reward!r:.60} at stage {stage!r} must be a number ({err}); it was not entered into "
                    "the ledger",
                )

    def add(self, stage: str, reward: Any, *, agent: str = "", component: str = TOTAL) -> None:
        """Add one step's reward.

        Args:
          stage: "raw", "shaped", "clipped", "normalised", "final", or a name of your own.
          reward: a number, a vector of components, or a mapping of component -> number.
          agent: its name; "" for the only one.
          component: of a single number; "" is the whole reward.
        Raises:
          TypeError, ValueError: `reward` is something else.
        """
        if hasattr(reward, "items") and hasattr(reward, "keys"):
            for name, value in reward.items():
                self.tally(agent, str(name), stage).add(float(value))
            return
        number, parts = read_reward(reward)
        if number is None:
            raise TypeError(f"found a {type(reward).__name__}")
        self.tally(agent, component, stage).add(number)
        for index, part in enumerate(parts):
            self.tally(agent, f"{component}/{index}" if component else str(index), stage).add(part)

    def catch_up(self, stage: str, total: float, n: int) -> None:
        """Add the sum of steps that were not added one by one. Their minimum and maximum are unknown.

        Args:
          stage: as in `add`.
          total: the sum.
          n: how many steps.
        """
        tally = self.tally("", TOTAL, stage)
        tally.total += total
        tally.magnitude += abs(total)
        tally.n += n

    def scalars(self) -> dict[str, float]:
        """The sums as curves: `return/<agent>`, `reward/<component>`, and `return_<stage>` for other stages."""
        scalars: dict[str, float] = {}
        for (agent, component, stage), tally in self._tallies.items():
            if stage != "final":
                if not agent and component == TOTAL:
                    scalars[f"return_{stage}"] = tally.total
            elif agent and component == TOTAL:
                scalars[f"return/{agent}"] = tally.total
            elif component != TOTAL and not agent:
                scalars[f"reward/{component}"] = tally.total
        return scalars

    def tally(self, agent: str, component: str, stage: str) -> Tally:
        """The sums of one agent, component and stage, created empty if new. Valid until `begin`.

        Args:
          agent, component, stage: as in `add`.
        """
        key = (agent, component, stage)
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = Tally()
        return tally

    def columns(self, episode_id: str) -> tuple[dict[str, Any], int]:
        """The episode's rows of the `rewards` table, as (columns, n).

        Args:
          episode_id: the episode's id, for each row.
        """
        rows = list(self._tallies.items())
        ranges = [tally.range for _, tally in rows]
        return {
            "episode_id": [episode_id] * len(rows),
            "agent": [agent for (agent, _, _), _ in rows],
            "component": [component for (_, component, _), _ in rows],
            "stage": [stage for (_, _, stage), _ in rows],
            "sum": [tally.total for _, tally in rows],
            "mean": [tally.mean for _, tally in rows],
            "min": [low for low, _ in ranges],
            "max": [high for _, high in ranges],
            "n": [tally.n for _, tally in rows],
        }, len(rows)

    def check(self, episode_id: str = "") -> list[dict[str, Any]]:
        """Check that components add up to the total of their agent and stage. Each finding is also an alert.

        Args:
          episode_id: the episode's id, for the findings.
        Returns:
          One dict per finding: agent, stage, total, components (name -> sum), difference. A stage with only
          components or only a total is not compared.
        """
        parts: dict[tuple[str, str], dict[str, Tally]] = {}
        for (agent, component, stage), tally in self._tallies.items():
            parts.setdefault((agent, stage), {})[component] = tally
        findings = []
        for (agent, stage), tallies in parts.items():
            whole = tallies.pop(TOTAL, None)
            if whole is None or not tallies:
                continue
            together = math.fsum(tally.total for tally in tallies.values())
            scale = max(whole.magnitude, sum(tally.magnitude for tally in tallies.values()), 1e-9)
            if abs(whole.total - together) > self.tolerance * scale:
                findings.append(
                    {
                        "episode_id": episode_id,
                        "agent": agent,
                        "stage": stage,
                        "total": whole.total,
                        "components": {name: tally.total for name, tally in tallies.items()},
                        "difference": whole.total - together,
                    }
                )
        for finding in findings:
            self._alert(finding)
        return findings

    def _alert(self, finding: Mapping[str, Any]) -> None:
        if self._alerts is None:
            return
        from rollbook.protocols import Alert

        about = f" of agent {finding['agent']!r}" if finding["agent"] else ""
        message = (
            f"the reward components{about} at stage {finding['stage']!r} add up to "
            f"{finding['total'] - finding['difference']:.6g}, the reward itself to {finding['total']:.6g}"
        )
        self._alerts.report(
            Alert("reward_ledger", "warn", message, finding, "rollbook.capture.ledger"),
            hint=f"episode {finding['episode_id']}, see the run's alerts",
        )

    def stage(self, env: object, name: str) -> Any:
        """Wrap an environment so that each of its rewards is added under a stage. Its behaviour does not change.

        Works with a gymnasium environment, or anything with the same `step`. Put one wrapper where each stage begins.

        Args:
          env: the environment.
          name: the stage, as in `add`.
        """
        from rollbook.capture.ledger_stage import LedgerStage

        return LedgerStage(env, self.enter, name)
