"""Measure rollbook beside its peers and write benchmarks/RESULTS.md.

python -m benchmarks                 all rows, in half an hour; ends with 1 and names those that miss their goals
python -m benchmarks --rows 1,2,7,E  some of them, printed
python -m benchmarks --against HEAD~20   the writing and reading rows beside rollbook of another commit, in turns
python -m benchmarks --quick         fewer repetitions
python -m benchmarks --dry           a hundredth of the size, once: does every row run?
python -m benchmarks scale --help    a measurement that is no row of the table; --help without a name lists them
"""

from __future__ import annotations

import argparse
import ast
import runpy
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from benchmarks import (
    datasets,
    episodes,
    harness,
    importing,
    page,
    reading,
    rollouts,
    samples,
    scale,
    sealing,
)
from benchmarks.lines import FORMER, Context, Line, NotMeasured
from benchmarks.loggers import MODULES
from benchmarks.results import RESULTS, checkout, measured_at
from benchmarks.results import page as page_of_results
from benchmarks.rows import ROWS

TABLE = {str(number): row for number, row in ROWS.items()}
TABLE |= {"15": reading.row_15, "16": reading.row_16, "17": reading.row_17, "18": reading.row_18}
TABLE |= {"19": reading.row_19, "20": reading.row_20}
TABLE |= {"D": datasets.rows, "E": episodes.rows, "F": scale.rows, "I": importing.rows, "K": sealing.rows}
TABLE |= {"R": rollouts.rows, "S": samples.rows, "P": page.rows}
"""Rows of the table by name: the recorder's by number, exports, episodes, writers that are killed, event files,
sealing, rollouts, samples, the page in a browser."""

BESIDE = ("1", "2", "3", "4", "7", "9", "10", "E")
"""The rows that can be measured beside rollbook of another commit."""

LONGEST = 7
"""Minutes that one row may take."""

PROGRAMS = (
    "scale", "actor_log", "sealing", "long_series", "places", "many_runs", "keepers", "page", "live_page", "frames",
    "server_memory",
    "adapters_loggers", "adapters_sb3", "importing", "episodes", "samples", "rollouts",
    "statistics.coverage", "statistics.curves", "statistics.grid", "statistics.speed",
)  # fmt: skip
"""Measurements of their own, each a module of this package with options of its own."""


@dataclass
class Table:
    """What has been measured so far.

    Attributes:
      lines: of the rows, in their order.
      missing: each row that was not measured, or not to its end -> why.
    """

    missing: dict[str, str]
    lines: list[Line] = field(default_factory=list)


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
    parser.add_argument("--dry", action="store_true", help="the smallest sizes, once: does every row run?")
    parser.add_argument("--minutes", type=float, default=30, help="what is not measured by then is named (default: 30)")
    parser.add_argument("--root", default=None, help="where to write (default: a temporary folder)")
    given = parser.parse_args()
    wanted = given.rows.split(",") if given.rows else list(BESIDE if given.against else TABLE)
    if given.against and (others := [name for name in wanted if name not in BESIDE]):
        parser.error(f"row {others[0]} cannot be measured beside another commit; these can: {', '.join(BESIDE)}")
    if unknown := [name for name in wanted if name not in TABLE]:
        parser.error(f"there is no row {unknown[0]}; there are {', '.join(TABLE)}")
    harness.become_subreaper()
    harness.compile_sources()
    harness.end_like_ctrl_c()
    began, commit = time.monotonic(), measured_at()
    table = Table(missing=dict.fromkeys(wanted, "not reached"))
    with ExitStack() as stack:
        root = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="rollbook-bench-", dir=given.root, ignore_cleanup_errors=True)
        )
        if given.against:
            harness.Job.former = stack.enter_context(checkout(given.against))
        repeat = 1 if given.dry else 2 if given.quick else 5
        context = Context(root=root, peers=_peers(given.against), repeat=repeat, dry=given.dry)
        for name in wanted:
            left = began + 60 * given.minutes - time.monotonic()
            try:
                _measure(name, context, table, min(left, 60 * LONGEST))
            finally:
                if wanted == list(TABLE) and not given.dry:
                    text = page_of_results((line.cells() for line in table.lines), commit, table.missing)
                    RESULTS.write_text(text, encoding="utf-8")
    print(f"{(time.monotonic() - began) / 60:.0f} minutes")
    said = [f"{line.number} {line.what}: {line.figure:,.4g} {line.unit}" for line in table.lines if line.met is False]
    said = [] if given.dry else ["these goals are missed:", *said] if said else []
    if table.missing:
        said += ["not measured:", *(f"row {name}: {why}" for name, why in table.missing.items())]
    if said:
        raise SystemExit("\n  ".join(said))


def _peers(against: str) -> list[str]:
    """What rollbook is measured beside: the peers that are installed, or itself at another commit."""
    if against:
        return [FORMER]
    peers = [name for name, module in MODULES.items() if find_spec(module) is not None]
    if missing := sorted(set(MODULES) - set(peers)):
        print(f"not installed, so not measured: {', '.join(missing)}")
    return peers


def _measure(name: str, context: Context, table: Table, seconds: float) -> None:
    """Measure one row, in so many seconds at most. A row that fails is named, and costs the others nothing."""
    if seconds <= 0:
        table.missing[name] = "the time was over before it began"
        return
    began = time.monotonic()
    table.missing[name] = "interrupted"
    try:
        with harness.at_most(seconds):
            for line in TABLE[name](context):
                print(line.text(), flush=True)
                table.lines.append(line)
        del table.missing[name]
    except NotMeasured as err:
        table.missing[name] = f"it needs {err}"
    except Exception as err:
        traceback.print_exc()
        table.missing[name] = f"{type(err).__name__}: {err}"
    finally:
        harness.end_children()
    print(f"  (row {name}: {time.monotonic() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
