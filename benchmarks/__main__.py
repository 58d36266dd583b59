"""Measure rollbook beside its peers and write benchmarks/RESULTS.md.

python -m benchmarks                 all rows; ends with 1 and names those that miss their goals
python -m benchmarks --rows 1,2,7,E  some of them, printed
python -m benchmarks --against HEAD~20   the writing and reading rows beside rollbook of another commit, in turns
python -m benchmarks --quick         fewer repetitions
python -m benchmarks scale --help    a measurement that is no row of the table; --help without a name lists them
"""

from __future__ import annotations

import argparse
import ast
import runpy
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from benchmarks import (
    datasets,
    episodes,
    harness,
    importing,
    long_series,
    page,
    reading,
    rollouts,
    samples,
    scale,
    sealing,
)
from benchmarks.lines import FORMER, Context, Line
from benchmarks.loggers import MODULES
from benchmarks.results import RESULTS, checkout, measured_at
from benchmarks.results import page as page_of_results
from benchmarks.rows import ROWS

TABLE = {str(number): row for number, row in ROWS.items()}
TABLE |= {"15": reading.row_15, "16": reading.row_16, "17": reading.row_17, "18": reading.row_18}
TABLE |= {"19": reading.row_19, "20": reading.row_20}
TABLE |= {"D": datasets.rows, "E": episodes.rows, "F": scale.rows, "K": sealing.rows, "L": long_series.rows}
TABLE |= {"I": importing.rows, "P": page.rows, "R": rollouts.rows, "S": samples.rows}
"""Rows of the table by name: the recorder's by number, exports, episodes, many writers on failing hosts, sealing, a
long series, event files, the page in a browser, rollouts, samples."""

BESIDE = ("1", "2", "3", "4", "7", "9", "10")
"""The rows that can be measured beside rollbook of another commit."""

PROGRAMS = (
    "scale", "actor_log", "sealing", "long_series", "places", "many_runs", "keepers", "page", "live_page",
    "adapters_loggers", "adapters_sb3", "importing",
    "statistics.coverage", "statistics.curves", "statistics.grid", "statistics.speed",
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
    parser.add_argument("--against", default="", metavar="COMMIT", help=f"beside this commit: rows {', '.join(BESIDE)}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--root", default=None, help="where to write (default: a temporary folder)")
    given = parser.parse_args()
    wanted = given.rows.split(",") if given.rows else list(BESIDE if given.against else TABLE)
    if given.against and (others := [name for name in wanted if name not in BESIDE]):
        parser.error(f"row {others[0]} cannot be measured beside another commit; these can: {', '.join(BESIDE)}")
    if unknown := [name for name in wanted if name not in TABLE]:
        parser.error(f"there is no row {unknown[0]}; there are {', '.join(TABLE)}")
    harness.become_subreaper()
    harness.compile_sources()
    began = time.perf_counter()
    with ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory(prefix="rollbook-bench-", dir=given.root))
        if given.against:
            harness.Job.former = stack.enter_context(checkout(given.against))
        context = Context(root=root, peers=_peers(given.against), repeat=2 if given.quick else 5)
        lines = list(_measured(wanted, context))
    print(f"{(time.perf_counter() - began) / 60:.0f} minutes")
    if wanted == list(TABLE):
        RESULTS.write_text(page_of_results((line.cells() for line in lines), measured_at()), encoding="utf-8")
    missed = [f"{line.number} {line.what}: {line.figure:,.4g} {line.unit}" for line in lines if line.met is False]
    if missed:
        raise SystemExit("these goals are missed:\n  " + "\n  ".join(missed))


def _peers(against: str) -> list[str]:
    """What rollbook is measured beside: the peers that are installed, or itself at another commit."""
    if against:
        return [FORMER]
    peers = [name for name, module in MODULES.items() if find_spec(module) is not None]
    if missing := sorted(set(MODULES) - set(peers)):
        print(f"not installed, so not measured: {', '.join(missing)}")
    return peers


def _measured(wanted: list[str], context: Context) -> Iterator[Line]:
    for name in wanted:
        start = time.perf_counter()
        for line in TABLE[name](context):
            print(line.text(), flush=True)
            yield line
        print(f"  (row {name}: {time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
