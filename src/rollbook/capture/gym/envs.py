"""Sub-environments that record themselves, in any process.

    envs = AsyncVectorEnv(record_envs([make_env] * 16, run.scope("train")))

gymnasium loses data when it merges the infos of sub-environments. Recording here, before the merge, loses nothing.
Works with the vectors of gymnasium, Stable-Baselines3 and Tianshou.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from rollbook.capture.episodes.recorder import EpisodeSettings
from rollbook.capture.gym.env_group import EnvGroup
from rollbook.capture.gym.single import RecordEpisodes
from rollbook.capture.shared_clocks import SharedClocks, clock_names
from rollbook.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.protocols import Recorder


class RecordedEnv:
    """A function that creates one recorded sub-environment. See `record_envs`."""

    def __init__(self, make: Callable[[], object], group: EnvGroup, index: int) -> None:
        self.make, self.group, self.index = make, group, index

    def __call__(self) -> Any:
        """Create the environment and wrap it."""
        env = RecordEpisodes(self.make(), self.group.settings_for(self.index), env_index=self.index)
        env.env_group = self.group
        return env


def record_envs(
    env_fns: Sequence[Callable[[], object]], recorder: Recorder, **settings: Any
) -> list[Callable[[], Any]]:
    """Wrap `env_fns` so that the environments they create record their own episodes.

    Pass the result to `SyncVectorEnv`, `AsyncVectorEnv`, or the vectors of Stable-Baselines3 and Tianshou. In a
    sub-process the recorder becomes a further writer of the run. Episode numbers (for "first" and "every") count over
    all sub-environments. "best" and "worst" are per sub-environment if it runs in a separate process.

    Args:
      env_fns: functions without arguments that each make an environment.
      recorder: a run or a scope.
      settings: see `rollbook.capture.episodes.EpisodeSettings`.
    Raises:
      BadInput: not a list of functions, or settings that cannot be used.
    """
    makers = list(env_fns)
    if not makers or not all(callable(make) for make in makers):
        raise BadInput(
            f"record_envs takes a list of functions that each make an environment; it was given {env_fns!r:.80}. Write "
            "record_envs([lambda: gymnasium.make(…) for _ in range(n)], scope)."
        )
    EpisodeSettings(recorder, **settings)  # mistakes in the settings raise here, not in a sub-process
    shared = SharedClocks(clock_names(recorder))
    home = os.getpid()
    group = EnvGroup(recorder, len(makers), settings, os.urandom(4).hex(), shared, home)
    weakref.finalize(group, _remove_at_home, shared, home)
    return [RecordedEnv(make, group, index) for index, make in enumerate(makers)]


def _remove_at_home(shared: SharedClocks, home: int) -> None:
    if os.getpid() == home:
        shared.remove()
