"""The steps of the current episode: some go to the table `steps` at once, others wait for its end."""

from __future__ import annotations

from rollbook.capture.episodes.infos import info_cells
from rollbook.capture.episodes.steps import StepChunks
from rollbook.capture.storable import UNSTORABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollbook.capture.episodes.settings import EpisodeSettings, Finished


class Trajectory:
    """The steps of one episode, then of the next.

    Args:
      settings: those of the recorder.
    Attributes:
      in_full: every step is wanted, or may be wanted at the end; else only the data in the infos of single steps.
    """

    __slots__ = ("_chunks", "_episode_id", "_never", "_obs", "_settings", "_why", "in_full")

    def __init__(self, settings: EpisodeSettings) -> None:
        self._settings, self._never = settings, settings.steps.never
        self.reset()

    def reset(self) -> None:
        """Reset: no episode is running."""
        self._episode_id = self._why = ""
        self._chunks: StepChunks | None = None
        self._obs: dict[str, object] = {}
        self.in_full = False

    def begin(self, episode_id: str, number: int, obs: object) -> None:
        """An episode begins, the `number`-th from 0, with the observation `obs` (or UNSTORABLE).

        Held data of one before it, which had no steps, are dropped.
        """
        if self._chunks is not None:
            self._chunks.drop()
        self.reset()
        self._episode_id = episode_id
        if self._never:
            return
        schedule = self._settings.steps
        if schedule.from_start(number):
            self.in_full, self._why = True, "schedule"
            self._chunks = self._new_chunks(hold=False)
        elif schedule.in_hindsight:
            self.in_full = True
            self._chunks = self._new_chunks(hold=True)
        if self.in_full:
            self._obs = self._cells_of(obs)

    def add(
        self,
        t: int,
        reward: float,
        terminated: object,
        truncated: object,
        info: Mapping[str, object] | None,
        obs: object,
        action: object,
        next_obs: object,
        cells: Mapping[str, object] | None,
        extra: Mapping[str, object] | None,
    ) -> None:
        """One step of an episode that is wanted in full; see `EpisodeRecorder.step`. `cells`: the data of its info."""
        chunks = self._chunks
        if chunks is None:
            return
        row: dict[str, object] = {"t": t}
        row.update(self._obs if obs is UNSTORABLE else self._cells_of(obs))
        if action is not UNSTORABLE:
            chunks.add_flat("action", action, row)
        row["reward"], row["terminated"], row["truncated"] = reward, bool(terminated), bool(truncated)
        if info:
            info_cells(info, self._settings.unstorable, row)
        if cells:
            row.update(cells)
        if extra:
            for name, value in extra.items():
                chunks.add_flat(str(name), value, row)
        chunks.add(row)
        self._obs = self._cells_of(next_obs)

    def add_late(self, t: int, cells: dict[str, object]) -> None:
        """Add the info data of a step whose episode is not wanted in full."""
        cells["t"] = t
        if self._chunks is None:
            self._chunks = self._new_chunks(hold=False)
        self._chunks.add(cells)

    def write_out(self) -> None:
        """Write the rows in memory, except held ones."""
        if self._chunks is not None and not self._chunks.hold:
            self._chunks.flush()

    def finish(self, finished: Finished, is_marked: bool) -> str:
        """The episode is over: write or drop its steps. Returns why it is kept in full, "" if it is not."""
        chunks = self._chunks
        if chunks is None:
            return ""
        obs, self._obs = self._obs, {}
        if obs:
            chunks.flush()  # the last observation has no action: a separate row and chunk
            chunks.add({"t": finished.length, **obs})
        if chunks.hold:
            self._why = self._settings.chosen(self._settings.steps, finished, is_marked)
            if self._why and not chunks.lost:
                chunks.keep()
            else:
                self._why = ""
                chunks.drop()
        chunks.flush()
        return self._why

    def _cells_of(self, obs: object) -> dict[str, object]:
        cells: dict[str, object] = {}
        if self._chunks is not None and obs is not UNSTORABLE:
            self._chunks.add_flat("obs", obs, cells)
        return cells

    def _new_chunks(self, *, hold: bool) -> StepChunks:
        settings = self._settings
        return StepChunks(
            settings.recorder,
            self._episode_id,
            hold=hold,
            most_rows=settings.most_steps,
            most_held_bytes=settings.held_bytes,
            unstorable=settings.unstorable,
            clocks=settings.clocks,
        )
