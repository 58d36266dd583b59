"""Wandb: rows to Weights & Biases, online or into its offline folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rollbook.system.optional import need
from rollbook.values import Histogram, Image, Video

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rollbook.protocols import Row, RunInfo

MOST_BINS = 512
"""The service's limit; histograms with more bins are merged to at most this many."""


class Wandb:
    """One W&B run per rollbook run, with the same id, so that a resumed run continues there.

    Values keep their keys and times. The clocks are sent as values under their names, and the run's clock is declared
    as the x-axis, so nothing has to increase. Delivery is at least once: after a crash in the middle of a delivery the
    service may hold a row twice.

    Args:
      project: by default the run's own.
      entity: user or team.
      mode: "online", "offline" or "disabled"; by default from W&B's own settings.
      settings: further arguments of `wandb.init`.
    """

    is_service = True
    thinned = (1.0, "key")
    needs = ("wandb", "wandb")
    accepts: frozenset[type] = frozenset({float, int, bool, str, Histogram, Image, Video})

    def __init__(
        self,
        *,
        project: str | None = None,
        entity: str | None = None,
        mode: str | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self._options = {"project": project, "entity": entity, "mode": mode}
        self._settings = dict(settings or {})
        self._wandb: Any = None
        self._run: Any = None
        self._folder = Path()

    def open(self, run: RunInfo) -> None:
        """Begin or resume the run with this id."""
        wandb = self._wandb = need("wandb", extra="wandb", why="the W&B sink")
        self._folder = Path(run.folder)
        asked: dict[str, object] = {
            "project": run.project,
            "name": run.name or None,
            "id": run.id,
            "resume": "allow",
            "reinit": "create_new",
            "config": {**run.config, "seed": run.seed} if run.seed is not None else dict(run.config),
            "group": run.group,
            "tags": list(run.tags),
            "notes": run.notes or None,
            "dir": str(self._folder),
            # rollbook samples the host, and the keeper's output is not the training program's
            "settings": wandb.Settings(console="off", silent=True, x_disable_stats=True, x_disable_meta=True),
        }
        asked.update({name: value for name, value in self._options.items() if value is not None})
        asked.update(self._settings)
        self._run = wandb.init(**asked)
        clocks = [run.x] if run.x else list(run.clocks[:1])
        for clock in clocks:
            self._run.define_metric(clock)
            self._run.define_metric("*", step_metric=clock, step_sync=False)

    def write(self, rows: Sequence[Row]) -> None:
        """Pass these rows to the client."""
        for row in rows:
            if not row.values:
                continue
            values = {key: shown for key, value in row.values.items() if (shown := self._shown(value)) is not None}
            for clock, reading in row.clocks.items():
                values.setdefault(clock, reading)
            values["_timestamp"] = row.time
            self._run.log(values)

    def close(self) -> None:
        """Finish the run. The client's service process has all rows then, and may still be writing for a moment."""
        run, self._run = self._run, None
        if run is not None:
            run.finish()

    def _shown(self, value: object) -> object:
        if isinstance(value, Histogram):
            edges, counts = value.edges, value.counts
            join = -(-len(counts) // MOST_BINS)
            if join > 1:
                edges = (*edges[:-1:join], edges[-1])
                counts = tuple(sum(counts[i : i + join]) for i in range(0, len(counts), join))
            return self._wandb.Histogram(np_histogram=(list(counts), list(edges)))
        if isinstance(value, (Image, Video)):
            path = (self._folder / value.path).resolve()
            if not path.is_relative_to(self._folder.resolve()) or not path.is_file():
                return None
            return self._wandb.Image(str(path)) if isinstance(value, Image) else self._wandb.Video(str(path))
        return value
