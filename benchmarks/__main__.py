"""Measure rollbook beside its peers and write benchmarks/RESULTS.md.

python -m benchmarks                 all rows (about fifteen minutes)
python -m benchmarks --rows 1,2,7,E  some of them
python -m benchmarks --quick         fewer repetitions
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from benchmarks import episodes, harness, samples
from benchmarks.loggers import MODULES
from benchmarks.rows import ROWS, Context, Line

RESULTS = Path(__file__).with_name("RESULTS.md")

TABLE = {**{str(number): row for number, row in ROWS.items()}, "E": episodes.rows, "S": samples.rows}
"""Rows of the table by name: the recorder's by number, episodes, samples."""


def main() -> None:
    """Run the rows that were asked for and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--rows", default="", help=f"some of {', '.join(TABLE)}, comma-separated")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--root", default=None, help="where to write (default: a temporary folder)")
    given = parser.parse_args()
    wanted = given.rows.split(",") if given.rows else list(TABLE)
    if unknown := [name for name in wanted if name not in TABLE]:
        parser.error(f"there is no row {unknown[0]}; there are {', '.join(TABLE)}")
    harness.become_subreaper()
    peers = [name for name, module in MODULES.items() if find_spec(module) is not None]
    missing = sorted(set(MODULES) - set(peers))
    if missing:
        print(f"not installed, so not measured: {', '.join(missing)}")
    root = tempfile.mkdtemp(prefix="rollbook-bench-", dir=given.root)
    lines: list[Line] = []
    try:
        context = Context(root=root, peers=peers, repeat=2 if given.quick else 5)
        for name in wanted:
            start = time.perf_counter()
            for line in TABLE[name](context):
                lines.append(line)
                print(line.text(), flush=True)
            print(f"  (row {name}: {time.perf_counter() - start:.0f} s)", flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if not given.rows:
        RESULTS.write_text(_page(lines), encoding="utf-8")
        print(f"wrote {RESULTS.name}")


def _page(lines: list[Line]) -> str:
    head = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Ratios compare runs of one session on one machine; absolute times belong to that "
        "machine",
        "and day. The peer's figure stands beside each ratio, so that a slow machine does not look like a slow "
        "library.",
        "",
        f"Measured {time.strftime('%Y-%m-%d')} with CPython {platform.python_version()} on {platform.system()}, "
        f"{os.cpu_count()} cores.",
        "",
        "| # | what | rollbook | peer | ratio | goal | |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(line.markdown() for line in lines), ""])


if __name__ == "__main__":
    main()
