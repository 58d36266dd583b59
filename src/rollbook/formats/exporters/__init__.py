"""Exporters: data recorded by rollbook, as files for other tools. One tool per file.

    from rollbook.formats import exporters

    exporters.export(book, "mcap", "episodes.mcap")                                   trajectories, for Foxglove
    exporters.export(runs, "rliable", "scores.npz", metric="test/return", by="config.algo")

`rollbook export RUN --to NAME` does the same. `make` builds an exporter from its name; `protocols.Exporter` describes
its interface. For data sets to learn from (Minari, RLlib, LeRobot) see `rollbook.formats.datasets`; `rollbook forward`
writes a finished run to W&B, MLflow or TensorBoard.
"""

from __future__ import annotations

from rollbook.formats.exporters._registry import GROUP, export, make, names, summary

__all__ = ["GROUP", "export", "make", "names", "summary"]
