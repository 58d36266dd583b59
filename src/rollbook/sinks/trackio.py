"""Trackio: rows to Trackio's local store, or to the space it is set up for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rollbook.sinks._steps import step_of
from rollbook.system.optional import need
from rollbook.values import Image
from rollbook.values.scalars import as_float

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollbook.protocols import Row, RunInfo


class Trackio:
    """One Trackio run per rollbook run, named `<name>-<id>`; it continues when the run is resumed.

    The clocks are sent as values. Delivery is at least once.

    Args:
      project: by default the run's own.
      space_id: a space to send to instead of the local store.
      x: the clock to use as the step; by default the run's own choice.
    """

    is_service = True
    thinned = (1.0, "key")
    needs = ("trackio", "trackio")
    accepts: frozenset[type] = frozenset({float, int, bool, str, Image})

    def __init__(self, *, project: str | None = None, space_id: str | None = None, x: str = "") -> None:
        self._project = project
        self._space = space_id
        self._asked_x = self._x = x
        self._clocks: tuple[str, ...] = ()
        self._trackio: Any = None
        self._run: Any = None
        self._folder = Path()

    def open(self, run: RunInfo) -> None:
        """Begin the run, or resume the one with this name."""
        self._trackio = need("trackio", extra="trackio", why="the Trackio sink")
        self._folder, self._clocks = Path(run.folder), run.clocks
        self._x = self._asked_x or run.x
        asked: dict[str, object] = {
            "project": self._project or run.project,
            "name": f"{run.name}-{run.id}" if run.name else run.id,
            "group": run.group,
            "config": {**run.config, "seed": run.seed} if run.seed is not None else dict(run.config),
            "resume": "allow",
            "embed": False,
        }
        if self._space:
            asked["space_id"] = self._space
        self._run = self._trackio.init(**asked)

    def write(self, rows: Sequence[Row]) -> None:
        """Pass these rows to the client."""
        for row in rows:
            if not row.values:
                continue
            step, _ = step_of(row, self._x, self._clocks)
            values: dict[str, Any] = dict(row.clocks)
            for key, value in row.values.items():
                if isinstance(value, Image):
                    path = (self._folder / value.path).resolve()
                    if path.is_relative_to(self._folder.resolve()) and path.is_file():
                        values[key] = self._trackio.Image(str(path))
                elif isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
                    values[key] = as_float(value)  # the client's JSON has 64-bit integers
                elif isinstance(value, (float, int, str)):
                    values[key] = value
            self._run.log(values, step=step)

    def close(self) -> None:
        """Wait until the client has sent everything."""
        run, self._run = self._run, None
        if run is not None:
            run.finish()
