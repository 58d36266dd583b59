"""The metric of one run, and the curve of a group of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rollbook.stats import Aligned, Band
from rollbook.system.brief import brief
from rollbook.values.array_types import Floats, NDArray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook import plots

__all__ = ["Floats", "GroupCurve", "RunCurve"]

Bools = npt.NDArray[np.bool_]


@brief
@dataclass(frozen=True, slots=True)
class RunCurve:
    """One run's metric.

    Attributes:
      x, y: [rows], as logged.
      crashed: whether the run ended without finishing.
      path: the run's folder, "" if it has none.
      task: "" if there is only one task.
      seed: None if it has none; with several tasks the runs of a seed are one unit.
      end: where the run itself ended on this axis, at or beyond its last row; None if unknown.
      unit: equal for runs with equal configuration, seed and code, which are one unit; "" if the run is its own unit.
    """

    x: NDArray
    y: NDArray
    crashed: bool = False
    path: str = ""
    task: str = ""
    seed: int | None = None
    unit: str = ""
    end: float | None = None


@brief
@dataclass(frozen=True, slots=True)
class GroupCurve:
    """The curve of one group of runs.

    Attributes:
      label: the common value of the runs.
      aligned: the runs on the common grid, with their raw rows.
      band: the centre line and its interval at each point.
      min_P, max_P: [points], the extremes of the value at the point and of every finite row since the previous point,
        so that spikes between points are included; NaN where no run has a value. With several tasks: of the units.
      paths: the runs' folders, by run name.
      tasks: number of tasks.
      units: name of each unit (with several tasks a seed, else a run).
      again: names of the runs that repeat an earlier one with the same configuration, seed and code.
      units_UP: [units, points], the values behind the band. With several tasks: each seed's mean over them, NaN if the
        seed lacks a task.
    """

    label: str
    aligned: Aligned
    band: Band
    min_P: Floats
    max_P: Floats
    paths: Mapping[str, str]
    tasks: int = 1
    units: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    units_UP: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def n_P(self) -> npt.NDArray[np.int64]:
        """[points], the number of runs with a value, repeats counted once; with several tasks: seeds with all tasks."""
        runs_are_units = self.tasks == 1 and not self.again
        return self.aligned.n_P if runs_are_units else np.asarray(self.band.n_P, dtype=np.int64)

    @property
    def vertices_P(self) -> Bools:
        """[points], where the drawn line may bend: where a run has a row since the previous point, and on both sides of
        a point where a run begins, ends or falls to its floor. Nothing was measured between two of them: a line through
        every grid point would show steps that are not in the data.
        """
        x_P, aligned = self.aligned.x_P, self.aligned
        if aligned.interpolation != "previous":
            return np.ones(len(x_P), dtype=np.bool_)
        bends_P = np.zeros(len(x_P), dtype=np.bool_)
        for run in aligned.raw:
            bends_P |= np.diff(np.searchsorted(run.x, x_P, side="right"), prepend=0) > 0
        for state_RP in (aligned.present_RP, aligned.floor_RP):
            changes = (state_RP[:, 1:] != state_RP[:, :-1]).any(axis=0)
            bends_P[1:] |= changes
            bends_P[:-1] |= changes
        bends_P[[0, -1]] = True
        return bends_P

    def legend(self, *, why: bool = True) -> str:
        """What the line and its band show, and the number of runs.

        Args:
          why: whether to say why there is no band.
        """
        return f"{self.label}: {self.band.legend(self.tasks, why=why)}"

    def drawn(self, seeds: str, extremes: bool) -> plots.Line:
        """The data of the chart: the band, and single runs where no valid band exists, or on request.

        Args:
          seeds, extremes: see `Curves.plot`.
        """
        from rollbook.plots import Line, Trace

        honest = bool(np.isfinite(self.band.low_P).any())
        runs: tuple[Trace, ...] = ()
        if self.tasks > 1 and (seeds == "always" or (seeds == "auto" and not honest)):
            x_P = self.aligned.x_P
            runs = tuple(Trace(x_P, values_P, name) for name, values_P in zip(self.units, self.units_UP, strict=True))
        elif seeds == "always" or (seeds == "auto" and not honest):
            runs = tuple(
                Trace(raw.x, raw.y, name) for raw, name in zip(self.aligned.raw, self.aligned.names, strict=True)
            )
        bad = [~np.isfinite(raw.y) for raw in self.aligned.raw]
        not_finite: Trace | None = None
        if any(each.any() for each in bad):
            rows = list(zip(self.aligned.raw, bad, strict=True))
            not_finite = Trace(
                np.concatenate([raw.x[b] for raw, b in rows]), np.concatenate([raw.y[b] for raw, b in rows])
            )
        bends = self.vertices_P
        return Line(
            self.legend(why=False),
            self.aligned.x_P[bends],
            self.band.centre_P[bends],
            self.band.low_P[bends] if honest else None,
            self.band.high_P[bends] if honest else None,
            self.min_P[bends] if extremes and honest else None,
            self.max_P[bends] if extremes and honest else None,
            () if len(runs) == 1 and honest else runs,
            not_finite,
        )
