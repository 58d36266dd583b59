"""Importers: runs that other tools wrote, as runs of rollbook. One tool per file.

    from rollbook.formats import importers

    importers.import_runs("logs/")                                  whatever is there: event files, CSV files, …
    importers.import_runs("logs/progress.csv", clock="iteration=gradient_step", dir="runs")

`rollbook import` does the same. A killed import continues where it stopped; importing a source again adds its new
data. `make` builds an importer from its name; `protocols.Importer` describes its interface.
"""

from __future__ import annotations

from rollbook.formats.importers._registry import GROUP, choose, make, names, summary
from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.formats.importers._found import FoundRun
    from rollbook.formats.importers._into_runs import Imported, import_runs
    from rollbook.formats.importers._labels import LABELS_FILE, field_of, label, labels_of, lines_in
    from rollbook.formats.importers._walk import Walk, found

__all__ = [
    "GROUP",
    "LABELS_FILE",
    "FoundRun",
    "Imported",
    "Walk",
    "choose",
    "field_of",
    "found",
    "import_runs",
    "label",
    "labels_of",
    "lines_in",
    "make",
    "names",
    "summary",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.formats.importers._into_runs": ("Imported", "import_runs"),
        "rollbook.formats.importers._labels": ("LABELS_FILE", "field_of", "label", "labels_of", "lines_in"),
        "rollbook.formats.importers._found": ("FoundRun",),
        "rollbook.formats.importers._walk": ("Walk", "found"),
    },
)
