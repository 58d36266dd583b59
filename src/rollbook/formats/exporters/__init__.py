"""Exporters: what rollbook recorded, as files that other tools open. One tool a file.

    from rollbook.formats import exporters

    exporters.export(book, "mcap", "episodes.mcap")                                   trajectories, for Foxglove
    exporters.export(runs, "rliable", "scores.npz", metric="test/return", by="config.algo")

`rollbook export RUN --to NAME` does the same. `make` builds an exporter from its name; see `protocols.Exporter` for
what one is. Data sets to learn from (Minari, RLlib, LeRobot) are made by `rollbook.formats.datasets`; `rollbook
forward` writes a finished run to W&B, MLflow or TensorBoard.
"""

from __future__ import annotations

from rollbook.formats.exporters._registry import GROUP, export, make, names, summary

__all__ = ["GROUP", "export", "make", "names", "summary"]
