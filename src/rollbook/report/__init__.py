"""Reports: one page about a run or a group of runs that needs nothing but itself.

from rollbook.report import write
write(rollbook.open("runs").where("project = 'cartpole'"), "report.html", metric="test/return", by="config.algo")
"""

from __future__ import annotations

from rollbook.report.write import write

__all__ = ["write"]
