"""A series of a thousand million rows: written for real, sealed, and looked at from afar and from near.

python -m benchmarks.long_series                    10^9 rows: some minutes, 12 GB of disk, removed afterwards
python -m benchmarks.long_series --rows 20000000    fewer
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks import harness

ROWS = 1_000_000_000
_CHUNK = 1_000_000
_ZOOMS = (1, 10, 100, 1_000, 10_000, 100_000)
"""The whole, a tenth of it, …"""


def measure(root: str, rows: int = ROWS) -> dict[str, float]:
    """Seconds of writing and sealing, bytes, milliseconds of processor time of an envelope (median of ten places a
    zoom, the slowest zoom; and the very first), MiB that the process grew by while it was read."""
    import numpy as np

    import rollbook

    out = tempfile.mkdtemp(dir=root)
    try:
        run = rollbook.init("bench", "long", dir=out, sinks=[])
        random = np.random.default_rng(0)
        last, began = 0.0, time.perf_counter()
        for start in range(0, rows, _CHUNK):
            walk = last + np.cumsum(random.standard_normal(_CHUNK))
            last = float(walk[-1])
            run.log_many({"m/x": walk}, env_step=np.arange(start, start + _CHUNK))
        written = time.perf_counter() - began
        run.finish()
        harness.wait_all([], orphan_seconds=1800)  # the keeper, which seals and merges
        sealed = time.perf_counter() - began
        size = sum(path.stat().st_size for path in Path(run.folder).rglob("*") if path.is_file())
        book = rollbook.Book(run.folder)
        before = most = _resident()
        worst, first = 0.0, 0.0
        for zoom in _ZOOMS:
            span, took = rows // zoom, []
            for place in np.linspace(0, rows - span, 10).astype(int) if zoom > 1 else [0] * 10:
                began = time.process_time()  # what is read lies in the cache of files, and other work changes it little
                book.series("m/x", x="env_step", points=2000, start=int(place), stop=int(place) + span)
                took.append((time.process_time() - began) * 1e3)
                most = max(most, _resident())
            first = first or took[0]
            worst = max(worst, float(np.median(took)))
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return {
        "written": written,
        "sealed": sealed,
        "bytes": float(size),
        "ms": worst,
        "first": first,
        "grown": most - before,
    }


def _resident() -> float:
    """MiB of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_series")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--root", default=None)
    given = parser.parse_args()
    harness.become_subreaper()
    print({name: round(value, 1) for name, value in measure(given.root or tempfile.gettempdir(), given.rows).items()})


if __name__ == "__main__":
    main()
