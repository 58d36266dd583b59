"""What the recorded sub-environments of one vector share, in any process."""

from __future__ import annotations

import os

from rollbook.capture.episodes.recorder import EpisodeSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.capture.shared_clocks import SharedClocks
    from rollbook.protocols import Recorder


class EnvGroup:
    """The shared state of the recorded sub-environments of one vector. A pickled copy works in another process.

    In the process that created it, all recorders share one `EpisodeSettings`. In other processes each has its own, and
    reads the clocks that the outer wrapper publishes.
    """

    def __init__(
        self, recorder: Recorder, n: int, settings: Mapping[str, Any], token: str, shared: SharedClocks, home: int
    ) -> None:
        self.recorder, self.n, self.settings, self.token, self.shared = recorder, n, dict(settings), token, shared
        self._home = home
        self._common: EpisodeSettings | None = None

    @property
    def at_home(self) -> bool:
        """Whether this is the process that created the group."""
        return self._home == os.getpid()

    def settings_for(self, index: int) -> EpisodeSettings:
        """The settings of sub-environment `index` in this process."""
        if self.at_home:
            if self._common is None:
                self._common = EpisodeSettings(self.recorder, token=self.token, **self.settings)
            return self._common
        settings = EpisodeSettings(
            self.recorder,
            token=self.token,
            stride=self.n,
            offset=index,
            clocks=self.shared.read,
            counts=self.shared.read_counts,
            **self.settings,
        )
        settings.described = index > 0
        return settings

    def __reduce__(self) -> tuple[object, ...]:
        return EnvGroup, (self.recorder, self.n, self.settings, self.token, self.shared, 0)
