"""Recording wrappers for gymnasium: `RecordEpisodes` for an environment or a vector, `record_envs` for their makers."""

from __future__ import annotations

from rollbook._lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.capture.gym.single import LedgerStage as LedgerStage
    from rollbook.capture.gym.single import RecordEpisodes as RecordEpisodes
    from rollbook.capture.gym.single import RecordVectorEpisodes as RecordVectorEpisodes
    from rollbook.capture.gym.single import record_envs as record_envs

__all__ = ["LedgerStage", "RecordEpisodes", "RecordVectorEpisodes", "record_envs"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.capture.gym.single": ("LedgerStage", "RecordEpisodes", "RecordVectorEpisodes", "record_envs"),
    },
)
