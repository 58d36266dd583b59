"""What do event files cost beside TensorBoard's own reader? Processor time, and seconds to the first curves.

Neither program's imports count. What rollbook opens or imports it also writes as rows.

python -m benchmarks.importing            100,000 scalars in one file, and in 100 files
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import harness

POINTS, KEYS, FILES = 100_000, 10, 100

_OURS = """
import os, resource, sys, time
def used():
    told = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in told)
import rollbook
from rollbook.formats import importers
source, home, how, small = sys.argv[1:]
os.environ["XDG_CACHE_HOME"] = home
len(list(rollbook.open(small)))  # loads what it needs, as the other program's imports do
began, start = used(), time.perf_counter()
if how == "import":
    for done in importers.import_runs(source, dir=home):
        assert done.rows
else:
    for book in rollbook.open(source):
        if how == "curves":
            assert len(book.series("key/0", x="step"))
print([used() - began, time.perf_counter() - start])
"""
_THEIRS = """
import sys, time
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from pathlib import Path
began, start = time.process_time(), time.perf_counter()
for folder in sorted({file.parent for file in Path(sys.argv[1]).rglob("*tfevents*")}):
    told = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    assert all(told.Scalars(tag) for tag in told.Tags()["scalars"])
print([time.process_time() - began, time.perf_counter() - start])
"""


def written(root: Path, files: int, points: int = POINTS) -> Path:
    """A folder of event files with `points` scalars together."""
    from rollbook.sinks.event_files import Messages

    messages = Messages("the benchmark")
    for n in range(files):
        folder = root / f"run_{n}"
        folder.mkdir(parents=True)
        with open(folder / "events.out.tfevents.1.host", "wb") as file:
            file.write(messages.framed(messages.version(1.7e9)))
            for step in range(points // files // KEYS):
                for key in range(KEYS):
                    value = messages.scalar(f"key/{key}", step * 0.3 + key)
                    file.write(messages.framed(messages.event(1.7e9 + step, step, [value])))
    return root


def measure(root: str, repeat: int, points: int = POINTS) -> dict[str, tuple[list[float], list[float]]]:
    """What was done -> (seconds of processor time, seconds), one of each for each turn."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    with tempfile.TemporaryDirectory(dir=root) as place:
        one, many = written(Path(place, "one"), 1, points), written(Path(place, "many"), FILES, points)
        small = written(Path(place, "small"), 1, KEYS)
        turns = {
            "rows written": (_OURS, one, "open"),
            "imported": (_OURS, one, "import"),
            "reader": (_THEIRS, one, ""),
            "curves": (_OURS, many, "curves"),
            "reader of many": (_THEIRS, many, ""),
        }
        for _turn in range(repeat):
            for name, (program, source, how) in turns.items():
                with tempfile.TemporaryDirectory(dir=place) as home:
                    words = ["-c", program, str(source), home, how, str(small)]
                    cpu, wall = json.loads(harness.python(place, *words))
                cpus, walls = found.setdefault(name, ([], []))
                cpus.append(cpu)
                walls.append(wall)
    return found


def rows(context: Any) -> Iterator[Any]:
    """The lines of the table.

    Raises:
      NotMeasured: tensorboard is not installed.
    """
    from benchmarks.lines import Line, NotMeasured

    if not context.has("tensorboard"):
        raise NotMeasured("tensorboard")
    told = measure(context.root, min(3, context.repeat), context.size(POINTS))
    reader = told["reader"][0]
    peer = "EventAccumulator"
    yield Line("I", "100,000 scalars of event files opened, CPU", told["rows written"][0], "s", peer, reader, 1 / 4)
    yield Line("I", "the same imported and sealed, CPU", told["imported"][0], "s", peer, reader, 1 / 4)
    cpu, many = told["curves"][0], told["reader of many"][0]
    yield Line("I", "100 event files to first curves, CPU", cpu, "s", peer, many)
    yield Line("I", "100 event files to first curves", told["curves"][1], "s", goal=2.0)


def main() -> None:
    """Measure and print."""
    harness.become_subreaper()
    for name, (cpu, wall) in measure(tempfile.gettempdir(), 2).items():
        print(f"{name:16} {min(cpu):6.2f} s of processor time, {min(wall):6.2f} s, the least of {len(cpu)} turns")


if __name__ == "__main__":
    main()
