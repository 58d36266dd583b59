"""Episodes from Stable-Baselines3's vector environments, with unrounded returns."""

from __future__ import annotations

import time

from rollbook.adapters.sb3._environments import find_monitors, monitors_normalised_returns, reward_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecEnv

    from rollbook.values.array_types import NDArray

    EpisodeColumns: TypeAlias = dict[str, Any]
    """What `Scope.log_episode` takes for an episode that has ended."""

_OF_MONITOR = frozenset({"r", "l", "t"})


class EpisodeTracker:
    """Follows the sub-environments step by step and reports ended episodes.

    Args:
      env: the algorithm's vector environment.
      clock: monotonic seconds.

    The return of an episode is, in this order: the unrounded sum of a Monitor in this process; the reported value (six
    decimals) of a Monitor in another process; the sum of the rewards seen here, in float64, before VecNormalize. With a
    Monitor, an episode ends when the Monitor reports it: Atari wrappers also set `done` when a life is lost.

    Attributes:
      reports_normalised: a VecMonitor outside of a VecNormalize reports the sums of normalised rewards. They become the
        column `monitor_return`, and the return is the sum seen here.
    """

    def __init__(self, env: VecEnv, clock: Callable[[], float] = time.perf_counter) -> None:
        import numpy as np

        n = int(env.num_envs)
        self._monitors = find_monitors(env) or [None] * n
        self._original = reward_source(env)
        self._monitored = any(monitor is not None for monitor in self._monitors)
        self.reports_normalised = self._original is not None and monitors_normalised_returns(env)
        self._must_add = self.reports_normalised or not all(monitor is not None for monitor in self._monitors)
        self._sums, self._lengths = np.zeros(n), np.zeros(n, dtype=np.int64)
        self._clock = clock
        now = clock()
        self._began = [now] * n

    def step(self, rewards: NDArray, dones: NDArray, infos: object) -> list[EpisodeColumns]:
        """Take one step of all environments. Returns the columns of each episode that ended with it, usually none."""
        if self._must_add:
            if self._original is not None:
                rewards = self._original()
            self._sums += rewards
            self._lengths += 1
        ended = dones.tolist()
        return self._ended(ended, infos) if True in ended else []

    def _ended(self, dones: list[bool], infos: Any) -> list[EpisodeColumns]:
        episodes, now = [], self._clock()
        for i, done in enumerate(dones):
            if not done:
                continue
            info = infos[i]
            reported = info.get("episode")
            if reported is not None:
                self._monitored = True
            elif self._monitored:
                continue
            episodes.append(self._episode(i, info, reported or {}, now - self._began[i]))
            self._sums[i], self._lengths[i], self._began[i] = 0.0, 0, now
        return episodes

    def _episode(
        self, i: int, info: Mapping[str, object], reported: Mapping[str, Any], seconds: float
    ) -> EpisodeColumns:
        columns = {str(key): _item(value) for key, value in reported.items() if key not in _OF_MONITOR}
        truncated = bool(info.get("TimeLimit.truncated", False))
        columns.update(
            {
                "return": self._return(i, reported),
                "length": int(reported["l"] if "l" in reported else self._lengths[i]),
                "seconds": seconds,
                "terminated": not truncated,
                "truncated": truncated,
                "env_index": i,
            }
        )
        if self.reports_normalised and "r" in reported:
            columns["monitor_return"] = float(reported["r"])
        if "t" in reported:
            columns["monitor_seconds"] = float(reported["t"])
        if info.get("is_success") is not None:
            columns["success"] = bool(info["is_success"])
        return columns

    def _return(self, i: int, reported: Mapping[str, Any]) -> float:
        if "r" not in reported or self.reports_normalised:
            return float(self._sums[i])
        value = float(reported["r"])
        monitor = self._monitors[i] if i < len(self._monitors) else None
        if monitor is not None and monitor.episode_returns:
            exact = float(monitor.episode_returns[-1])
            if abs(exact - value) <= 1e-6 + 1e-7 * abs(value):
                return exact
        if type(reported["r"]) is not float and abs(self._sums[i] - value) <= 1e-3 * (1 + abs(value)):
            return float(self._sums[i])  # a VecMonitor adds up in float32
        return value


def finished_episode(info: Mapping[str, Any]) -> EpisodeColumns:
    """The columns of an episode for which only the Monitor's summary is available."""
    columns = {str(key): _item(value) for key, value in info.items() if key not in _OF_MONITOR}
    return {**columns, "return": float(info["r"]), "length": int(info["l"])}


def _item(value: object) -> Any:
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "size", 1) == 1:
        return item()
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def watch_evaluation(callback: BaseCallback, ended: Callable[[EpisodeColumns], None]) -> bool:
    """Pass every episode of an `EvalCallback` to `ended`, in addition to what the callback does.

    Uses the function that it passes to `evaluate_policy`, which is called at each step. Returns whether that was
    possible.
    """
    original = getattr(callback, "_log_success_callback", None)
    if original is None or getattr(original, "rollbook", False):
        return False

    def each_step(local: dict[str, Any], outer: dict[str, object]) -> None:
        original(local, outer)
        info = local.get("info") or {}
        monitored = bool(local.get("is_monitor_wrapped", False))
        reported = info.get("episode") if monitored else None
        if not local.get("done") or (monitored and reported is None):
            return
        i = int(local.get("i", 0))
        truncated = bool(info.get("TimeLimit.truncated", False))
        columns = {
            "return": float(reported["r"] if reported else local["current_rewards"][i]),
            "length": int(reported["l"] if reported else local["current_lengths"][i]),
            "terminated": not truncated,
            "truncated": truncated,
            "env_index": i,
        }
        if info.get("is_success") is not None:
            columns["success"] = bool(info["is_success"])
        ended(columns)

    each_step.rollbook = True  # type: ignore[attr-defined]
    callback._log_success_callback = each_step
    return True
