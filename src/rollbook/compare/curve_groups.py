"""A metric of groups of runs on a common grid, with tables and a chart."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rollbook.compare.facts import Fact, title_of, together
from rollbook.compare.group_curve import Floats, GroupCurve
from rollbook.compare.parting import Parted, parted
from rollbook.compare.reached import Reached, reached
from rollbook.errors import BadInput, UnknownOption
from rollbook.schema.aliases import lower_is_better
from rollbook.system.brief import brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from rollbook.plots import Panel, Picture
    from rollbook.values.array_types import NDArray

_LEAST_SEEDS, _MOST_AREAS = 5, 3
"""With this many seeds a band is missing only where all scores are equal; the most groups whose areas are readable."""


@brief
@dataclass(frozen=True, slots=True)
class Curves:
    """A metric of groups of runs on a common grid.

    Attributes:
      key, axis, by: the metric, its axis, and the field that forms the groups ("" for one group).
      x_P: [points], the grid.
      groups: in the order of their first runs.
      facts: what readers should know, besides the remarks of each group; `notes` has their sentences.
      preliminary: whether better bands, from more resamples, will follow.
      members: label -> the folders of its runs; missing: those of them without a row of the key.
      looks: label -> which colour and dashes of the style, from 0; a group without one has those of its index.
    """

    key: str
    axis: str
    by: str
    x_P: Floats
    groups: tuple[GroupCurve, ...]
    facts: tuple[Fact, ...] = ()
    preliminary: bool = False
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    looks: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, label: str) -> GroupCurve:
        for group in self.groups:
            if group.label == label:
                return group
        raise BadInput(f"no group {label!r}; there are {', '.join(repr(group.label) for group in self.groups)}")

    @property
    def notes(self) -> tuple[str, ...]:
        """The facts in words; what holds of several groups is said once."""
        return tuple(fact.sentence for fact in together(self.facts))

    def sentences(self) -> list[str]:
        """Remarks for readers of the curves: where n changes, which runs crashed, which were left out."""
        many = len(self.groups) > 1
        of_groups = [
            f"{group.label}: {sentence}" if many else sentence
            for group in self.groups
            for sentence in group.aligned.sentences()
        ]
        return [*self.notes, *of_groups]

    def columns(self) -> dict[str, NDArray]:
        """In long form, one row per group and point: group, x, centre, low, high, min, max, n, claim."""
        n = len(self.x_P)
        parts = {
            "group": [np.full(n, group.label, dtype=object) for group in self.groups],
            self.axis: [self.x_P for _ in self.groups],
            "centre": [group.band.centre_P for group in self.groups],
            "low": [group.band.low_P for group in self.groups],
            "high": [group.band.high_P for group in self.groups],
            "min": [group.min_P for group in self.groups],
            "max": [group.max_P for group in self.groups],
            "n": [group.n_P for group in self.groups],
            "claim": [group.band.claim_P for group in self.groups],
        }
        return {name: np.concatenate(arrays) for name, arrays in parts.items()}

    def table(self) -> list[dict[str, Any]]:
        """`columns` as one row per group and point."""
        columns = self.columns()
        return [
            dict(zip(columns, cells, strict=True))
            for cells in zip(*(c.tolist() for c in columns.values()), strict=True)
        ]

    def seeds(self) -> dict[str, NDArray]:
        """Every run in long form, as seaborn expects it: group, run, x, value; points without a value are left out."""
        groups, runs, xs, values = [], [], [], []
        for group in self.groups:
            for name, value_P, present_P in zip(
                group.aligned.names, group.aligned.values_RP, group.aligned.present_RP, strict=True
            ):
                n = int(present_P.sum())
                groups.append(np.full(n, group.label, dtype=object))
                runs.append(np.full(n, name, dtype=object))
                xs.append(self.x_P[present_P])
                values.append(value_P[present_P])
        named = {"group": groups, "run": runs, self.axis: xs, self.key: values}
        return {name: np.concatenate(arrays) if arrays else np.zeros(0) for name, arrays in named.items()}

    def plot(self, *, seeds: str = "auto", extremes: bool = True, theme: str = "light", **options: Any) -> Picture:
        """The curves as a chart.

        Args:
          seeds: the single runs as thin lines: "auto" (where no valid band exists), "always", or "never".
          extremes: a faint area from the lowest to the highest row of any run, for up to three groups.
          theme: "light" or "dark".
          options: options of the chart, such as limits=(0, 500) or log=True.
        """
        from rollbook.plots import draw

        return draw("curves", self.panel(seeds=seeds, extremes=extremes), theme=theme, **options)

    def reached(self, level: float | None = None, direction: str | None = None) -> Reached:
        """The share of runs that have reached a score, along training: sample efficiency, valid from 3 seeds.

        Args:
          level: the score to reach. None: the best score of two digits that the centre of every group reaches.
          direction: whether "higher" or "lower" is better; default: by the name of the key, as in `compare`.
        Raises:
          BadInput: the curves are of several tasks, whose runs are not one population.
        """
        lower = direction == "lower" or (direction is None and lower_is_better(self.key))
        found = reached(self.groups, self.x_P, key=self.key, axis=self.axis, level=level, lower=lower)
        return replace(found, looks=self.looks)

    def parted(self, level: float = 0.95) -> tuple[Parted, ...]:
        """The point from which two groups stay apart, for each pair of groups.

        At each point with at least 5 units per group, Welch's interval of the difference of the means is computed. The
        groups have parted if, from one point to the last common one, it excludes 0. The interval is pointwise: it shows
        where groups differ, not whether. Use `compare` to decide which one is better.
        """
        return tuple(parted(a, b, self.x_P, self.axis, level) for a, b in itertools.combinations(self.groups, 2))

    def _repr_html_(self) -> str:
        from rollbook.plots.cards import card, grid, sentences, spark

        drawn = [
            spark(
                [(self.x_P[bends], group.band.centre_P[bends])],
                [(self.x_P[bends], group.band.low_P[bends], group.band.high_P[bends])],
                width=260,
                height=60,
            )
            for group, bends in ((group, group.vertices_P) for group in self.groups)
        ]
        rows = [{"group": group.legend()} for group in self.groups]
        return card(
            title_of(self.key, self.by),
            f"along {self.axis}",
            grid(rows, sparks={"": drawn}),
            sentences(self.sentences()),
        )

    def panels(self, *, seeds: str = "auto", extremes: bool = True) -> list[Panel]:
        """One panel per group, all on the same grid."""
        made: list[Panel] = []
        for group in self.groups:
            one = replace(self, groups=(group,), facts=())
            panel = one.panel(seeds=seeds, extremes=extremes, title=group.label)
            own, shared = one._remarks(extremes)
            remarks = (*(f"{group.label}: {remark}" for remark in own), *shared)
            made.append(replace(panel, remarks=remarks if made else (*self.notes, *remarks)))
        return made

    def panel(self, *, seeds: str = "auto", extremes: bool = True, title: str = "") -> Panel:
        """The data of the chart; see `plot`."""
        from rollbook.plots import Panel

        if seeds not in ("auto", "always", "never"):
            raise UnknownOption(f'seeds={seeds!r}: it has to be "auto", "always" or "never"')
        extremes = extremes and len(self.groups) <= _MOST_AREAS
        own, shared = self._remarks(extremes)
        lines = tuple(replace(group.drawn(seeds, extremes), look=self.looks.get(group.label)) for group in self.groups)
        return Panel(title or title_of(self.key, self.by), self.axis, lines, remarks=(*own, *shared))

    def _remarks(self, extremes: bool) -> tuple[list[str], list[str]]:
        """What a chart says about the groups, and about all that is drawn."""
        own, shared = self.sentences(), []
        without = [group.band for group in self.groups if not np.isfinite(group.band.low_P).any()]
        reasons = dict.fromkeys(reason for band in without for reason in band.reasons)
        shared += [f"No band: {'; '.join(reasons)}."] if reasons else []
        for group in self.groups:
            band = group.band
            if (
                (band.n_P >= _LEAST_SEEDS) & np.isfinite(band.centre_P) & np.isnan(band.low_P)
            ).any() and not band.reasons:
                whose = f"{group.label}: no" if len(self.groups) > 1 else "No"
                own.append(f"{whose} band where all seeds score alike, which is not certainty.")
        if extremes and any(np.isfinite(group.band.low_P).any() for group in self.groups):
            several = any(group.tasks > 1 for group in self.groups)
            what = "mean over the tasks" if several else "row"
            shared.append(f"Faint: from the lowest to the highest {what} of any seed.")
        return own, shared

    def to_pandas(self) -> pd.DataFrame:
        """`columns()` as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def to_polars(self) -> pl.DataFrame:
        """`columns()` as a Polars data frame."""
        import polars as pl

        return pl.DataFrame({name: values.tolist() for name, values in self.columns().items()})
