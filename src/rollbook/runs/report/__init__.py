"""Reports: one self-contained page about a run or a group of runs.

from rollbook.runs.report import write
write(rollbook.open("runs").where("project = 'cartpole'"), "report.html", metric="test/return", by="config.algo")
"""

from __future__ import annotations

from rollbook.runs.report.write import write

__all__ = ["write"]
