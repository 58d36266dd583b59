"""Measure rollbook beside its peers and write benchmarks/RESULTS.md.

python -m benchmarks                 all rows (about fifteen minutes)
python -m benchmarks --rows 1,2,7,E  some of them, printed
python -m benchmarks --rows 2 --write    and put in the place of those that the page has
python -m benchmarks --quick         fewer repetitions
python -m benchmarks scale --help    a measurement that is no row of the table; --help without a name lists them
"""

from __future__ import annotations

import argparse
import ast
import os
import platform
import runpy
import shutil
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from benchmarks import datasets, episodes, harness, long_series, reading, samples, scale, sealing
from benchmarks.loggers import MODULES
from benchmarks.rows import ROWS, Context, Line

RESULTS = Path(__file__).with_name("RESULTS.md")

TABLE = {str(number): row for number, row in ROWS.items()}
TABLE |= {"15": reading.row_15, "16": reading.row_16, "17": reading.row_17, "18": reading.row_18}
TABLE |= {"19": reading.row_19, "20": reading.row_20}
TABLE |= {"D": datasets.rows, "E": episodes.rows, "F": scale.rows, "K": sealing.rows, "L": long_series.rows}
TABLE |= {"S": samples.rows}
"""Rows of the table by name: the recorder's by number, exports, episodes, many writers on failing hosts, sealing, a
long series, samples."""


PROGRAMS = (
    "scale", "actor_log", "sealing", "long_series", "places", "many_runs", "keepers", "page", "live_page",
    "adapters_loggers", "adapters_sb3",
    "statistics.coverage", "statistics.curves", "statistics.peeking", "statistics.speed",
)  # fmt: skip
"""Measurements of their own, each a module of this package with options of its own."""


def _first_line(program: str) -> str:
    """What a program says it measures; nothing of it is imported for that."""
    path = Path(__file__).parent.joinpath(*program.split(".")).with_suffix(".py")
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]


def main() -> None:
    """Run the rows that were asked for and write the table."""
    if len(sys.argv) > 1 and sys.argv[1] in PROGRAMS:
        program = f"benchmarks.{sys.argv.pop(1)}"
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return
    listed = "\n".join(f"  {name:20} {_first_line(name)}" for name in PROGRAMS)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"measurements of their own (python -m benchmarks NAME --help):\n{listed}",
    )
    parser.add_argument("--rows", default="", help=f"some of {', '.join(TABLE)}, comma-separated")
    parser.add_argument("--write", action="store_true", help="with --rows: put these rows into the page")
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
    if not given.rows or given.write:
        RESULTS.write_text(_page(lines, keep=bool(given.rows)), encoding="utf-8")
        print(f"wrote {RESULTS.name}")


def _page(lines: list[Line], keep: bool) -> str:
    """The page with these lines, and with the other rows of the page as it is if they are to be kept."""
    new: dict[str, list[str]] = {}
    for line in lines:
        new.setdefault(str(line.number), []).append(line.markdown())
    old: dict[str, list[str]] = {}
    if keep and RESULTS.exists():
        for text in RESULTS.read_text(encoding="utf-8").splitlines():
            number = text.removeprefix("| ").partition(" |")[0]
            if text.startswith("| ") and number not in ("#", *new):
                old.setdefault(number, []).append(text)
    rows = {**old, **new}
    order = sorted(rows, key=lambda number: (not number.isdigit(), int(number) if number.isdigit() else 0, number))
    head = [
        "# Benchmarks",
        "",
        "Written by `make bench`; `python -m benchmarks --rows N --write` measures single rows again. Ratios compare "
        "loggers that",
        "took turns on one machine; absolute times belong to that machine and day. The peer's figure stands beside "
        "each ratio, so",
        "that a slow machine does not look like a slow library. Figures vary by a tenth to a quarter from run to run, "
        "rows 2 and 10",
        "by more: a row that just meets its goal may miss it in the next run.",
        "",
        f"Measured {time.strftime('%Y-%m-%d')} with CPython {platform.python_version()} on {platform.system()}, "
        f"{os.cpu_count()} cores.",
        "",
        "| # | what | rollbook | peer | ratio | goal | |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(text for number in order for text in rows[number]), ""])


if __name__ == "__main__":
    main()
