"""Numbers about groups of runs: curves with bands, scores with intervals, and verdicts. Their only home.

Arrays and names in, numbers out: this knows `rollbook.stats` and nothing of files. `RunSet.curves` and `RunSet.compare`
gather what it needs; tables, plots, reports and the page show what it says and compute nothing again.
"""

from __future__ import annotations

from rollbook.compare.associations import Association, association
from rollbook.compare.comparing import compare
from rollbook.compare.comparison import Comparison
from rollbook.compare.curve_groups import Curves
from rollbook.compare.drawing_curves import curves, refined_curves
from rollbook.compare.grid import shared_grid
from rollbook.compare.group_curve import GroupCurve, Line
from rollbook.compare.parting import Parted
from rollbook.compare.plans import plan_data
from rollbook.compare.reached import Reached
from rollbook.compare.scores import Entry, Group, Pair
from rollbook.stats import Study

__all__ = [
    "Association",
    "Comparison",
    "Curves",
    "Entry",
    "Group",
    "GroupCurve",
    "Line",
    "Pair",
    "Parted",
    "Reached",
    "Study",
    "association",
    "compare",
    "curves",
    "plan_data",
    "refined_curves",
    "shared_grid",
]
