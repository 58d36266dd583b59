"""The exporters by name. A new one is one file and one line here.

Another package offers one as an entry point in the group `rollbook.exporters`, named like the tool and pointing at
its class. Nothing is imported before it is used.
"""

from __future__ import annotations

import os
from pathlib import Path

from rollbook.errors import BadInput
from rollbook.system.files import replacing
from rollbook.system.registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book
    from rollbook.protocols import Exporter
    from rollbook.runs.run_set import RunSet

GROUP = "rollbook.exporters"

_EXPORTERS = {
    "mcap": "mcap:Mcap",
    "rerun": "rerun:Rerun",
    "rliable": "rliable:Rliable",
    "marl-eval": "marl_eval:MarlEval",
}

_REGISTRY = Registry("exporter", "rollbook.formats.exporters", _EXPORTERS, GROUP)


names, summary = _REGISTRY.names, _REGISTRY.summary


def make(name: str, **options: object) -> Exporter:
    """The exporter of that name.

    Args:
      name: one of `names()`.
      options: those of the exporter.
    Raises:
      UnknownOption: no exporter has that name, or it has no such option.
      BadInput: an option has an unusable value.
    """
    exporter: Exporter = _REGISTRY.make(name, options)
    return exporter


def export(runs: RunSet | Book, to: str, out: str | os.PathLike[str], **options: object) -> dict[str, int]:
    """Write runs as a file of another tool. The file is replaced when all is written; the runs never change.

    Args:
      runs: a set of runs, or one book.
      to: the exporter's name.
      out: the file.
      options: those of the exporter, such as metric="test/return".
    Returns:
      Description of what was written or left out -> how many.
    Raises:
      BadInput: nothing to write, or the folder of the file does not exist.
      UnknownOption: no such exporter or option.
      MissingExtra: the tool's package is not installed.
    """
    exporter = make(to, **options)
    folder = os.path.dirname(os.path.abspath(out))
    if not os.path.isdir(folder):
        raise BadInput(f"export to {os.fspath(out)}: there is no folder {folder}.", "Make it first")
    if not hasattr(runs, "one"):
        from rollbook.runs.catalog import open as open_runs

        runs = open_runs(runs.path)
    with replacing(out, ending=Path(out).suffix) as temporary:
        return exporter.write(runs, Path(temporary))
