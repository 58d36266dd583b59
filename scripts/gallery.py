#!/usr/bin/env python3
"""Records the studies of the gallery and makes a copy of the page of each: `make gallery`.

    python scripts/gallery.py OUT [NAME ...]        OUT/NAME/index.html for each study of examples/gallery, or some

A study is a script of examples/gallery that records runs below ./runs, or those of several tools below ./study; the
copy works from any file server. The site of `make docs` takes the copies of build/gallery along and links them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

STUDIES = Path(__file__).resolve().parents[1] / "examples" / "gallery"
VIEWS = {
    "seeds": "compare",
    "sweep": "sweep",
    "fault": "health",
    "killed": "timings",
    "video": "episodes",
    "environment_data": "runs",
    "grpo": "rollouts",
    "lightzero": "runs",
    "other_tools": "runs",
}
"""Study -> the view that its copy opens on; in the order of the gallery."""
GROUPS = {"lightzero": "lightzero"}
"""Study that needs the packages of a framework -> its environment, made by scripts/framework_env.py."""


def main(out: Path, names: list[str]) -> int:
    """Record and export; the exit status."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ROLLBOOK")}
    clean["PYTHONPATH"] = str(STUDIES.parents[1] / "src")
    for name in names or VIEWS:
        python = Path(sys.executable)
        if name in GROUPS:
            python = STUDIES.parents[1] / ".venvs" / GROUPS[name] / "bin" / "python"
            if not python.exists():
                print(f"{name}: not recorded; first: python scripts/framework_env.py {GROUPS[name]}", flush=True)
                continue
        with tempfile.TemporaryDirectory() as folder:
            run = partial(subprocess.run, cwd=folder, env=clean, check=True, stdout=subprocess.DEVNULL)
            run([str(python), str(STUDIES / f"{name}.py")])
            folders = [each for each in ("runs", "study") if Path(folder, each).is_dir()]
            shutil.rmtree(out / name, ignore_errors=True)
            run([sys.executable, "-m", "rollbook", "ui", *folders, "--export", str(out / name)])
        size = sum(path.stat().st_size for path in (out / name).rglob("*") if path.is_file())
        print(f"{name}: {size / 1e6:.1f} MB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
