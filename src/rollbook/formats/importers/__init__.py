"""Importers: runs that other tools wrote, as runs of rollbook. One tool a file.

    from rollbook.formats import importers

    importers.import_runs("logs/")                                  whatever is there: event files, CSV files, …
    importers.import_runs("logs/progress.csv", clock="iteration=gradient_step", dir="runs")

`rollbook import` does the same. A killed import goes on where it stopped, and one of a source that has grown brings
what is new. `make` builds an importer from its name; see `protocols.Importer` for what one is.
"""

from __future__ import annotations

from rollbook.formats.importers._registry import GROUP, choose, make, names, summary
from rollbook.ground.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.formats.importers._into_runs import Imported, import_runs

__all__ = ["GROUP", "Imported", "choose", "import_runs", "make", "names", "summary"]

__getattr__, __dir__ = attach(__name__, {"rollbook.formats.importers._into_runs": ("Imported", "import_runs")})
