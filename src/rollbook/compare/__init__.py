"""All numbers about groups of runs: curves with bands, scores with intervals, and verdicts.

Takes arrays and names, returns numbers: this package uses `rollbook.stats` and reads no files. `RunSet.curves` and
`RunSet.compare` collect its inputs; tables, plots, reports and the page show its results and compute nothing again.
"""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.compare.associations import Association as Association
    from rollbook.compare.associations import association as association
    from rollbook.compare.comparing import centre as centre
    from rollbook.compare.comparing import compare as compare
    from rollbook.compare.comparison import Comparison as Comparison
    from rollbook.compare.curve_groups import Curves as Curves
    from rollbook.compare.drawing_curves import curves as curves
    from rollbook.compare.drawing_curves import refined_curves as refined_curves
    from rollbook.compare.grid import shared_grid as shared_grid
    from rollbook.compare.group_curve import GroupCurve as GroupCurve
    from rollbook.compare.group_curve import RunCurve as RunCurve
    from rollbook.compare.paired import PairedSeeds as PairedSeeds
    from rollbook.compare.parting import Parted as Parted
    from rollbook.compare.plans import plan_data as plan_data
    from rollbook.compare.published import published as published
    from rollbook.compare.reached import Reached as Reached
    from rollbook.compare.scores import Entry as Entry
    from rollbook.compare.scores import Group as Group
    from rollbook.compare.scores import Pair as Pair
    from rollbook.compare.sweeps import Importance as Importance
    from rollbook.compare.sweeps import Sweep as Sweep
    from rollbook.compare.sweeps import Tried as Tried
    from rollbook.compare.sweeps import sweep as sweep
    from rollbook.stats import Study as Study

__all__ = [
    "Association",
    "Comparison",
    "Curves",
    "Entry",
    "Group",
    "GroupCurve",
    "Importance",
    "Pair",
    "PairedSeeds",
    "Parted",
    "Reached",
    "RunCurve",
    "Study",
    "Sweep",
    "Tried",
    "association",
    "centre",
    "compare",
    "curves",
    "plan_data",
    "published",
    "refined_curves",
    "shared_grid",
    "sweep",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.compare.associations": ("Association", "association"),
        "rollbook.compare.comparing": ("centre", "compare"),
        "rollbook.compare.comparison": ("Comparison",),
        "rollbook.compare.curve_groups": ("Curves",),
        "rollbook.compare.drawing_curves": ("curves", "refined_curves"),
        "rollbook.compare.grid": ("shared_grid",),
        "rollbook.compare.group_curve": ("GroupCurve", "RunCurve"),
        "rollbook.compare.paired": ("PairedSeeds",),
        "rollbook.compare.parting": ("Parted",),
        "rollbook.compare.plans": ("plan_data",),
        "rollbook.compare.published": ("published",),
        "rollbook.compare.reached": ("Reached",),
        "rollbook.compare.scores": ("Entry", "Group", "Pair"),
        "rollbook.compare.sweeps": ("Importance", "Sweep", "Tried", "sweep"),
        "rollbook.stats": ("Study",),
    },
)
