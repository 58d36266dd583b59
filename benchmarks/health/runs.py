"""Makes run folders of the trainings, so that `rollbook check`, the page and other readers see what a monitor would."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["make_runs"]


def make_runs(folder: Path, to: Path) -> int:
    """Import what `to` lacks; how many runs there are then. Rules know the length of each run, as in training."""
    from rollbook.formats.importers import import_runs

    n = 0
    for path in sorted(folder.glob("*.jsonl")):
        with path.open() as lines:
            about = json.loads(next(lines))
        for made in import_runs(path, dir=to, project="health"):
            n += 1
            manifest = Path(made.folder) / "run.json"
            fields = json.loads(manifest.read_text())
            total = {"env_step": about["config"]["steps"]}
            if fields.get("total") != total:
                manifest.write_text(json.dumps({**fields, "seed": about["seed"], "total": total}, indent=1) + "\n")
    return n
