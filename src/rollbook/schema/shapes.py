"""Small JSON files of a run folder as types; run.json is `manifest.RunJson`.

For the type checker and for readers of the code; not loaded at run time. docs/internals.md lists the files.
"""

from __future__ import annotations

from typing import Any, TypedDict


class KeeperOrders(TypedDict, total=False):
    """data/keeper/plan.json: the work that a run gives its keeper.

    Attributes:
      sinks: {"name": …, option: value}, those that the keeper creates; sink options may be under "options".
      x: the clock of sinks with one axis.
      host_seconds: interval of host samples; 0 for never.
      rules: {"name": …, option: value}.
    """

    sinks: list[dict[str, Any]]
    x: str
    host_seconds: float
    rules: list[dict[str, object]]


class CheckpointEntry(TypedDict):
    """One checkpoint in ckpt/.index.json.

    Attributes:
      name: its file name in ckpt/; None if it was registered and written by others.
      path: relative to the run's folder if it is inside.
      clocks: clock -> reading at the save.
    """

    id: str
    name: str | None
    path: str
    score: float | None
    higher_is_better: bool
    format: str
    clocks: dict[str, int]
