"""What reading costs in a large run: SQL, a point in time, a search in samples, a live run, very many keys.

Each read is a fresh process, so its memory is its own; the figure is processor time, which other work changes little.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks import harness
from benchmarks.lines import Context, Line

__all__ = ["row_15", "row_16", "row_17", "row_18", "row_19", "row_20"]

ROWS, KEYS = 10_000_000, 10
"""10^8 numbers."""

SAMPLES = 2_000_000

_MAKE = """
import sys, numpy as np, rollbook
run = rollbook.init("bench", "reading", dir=sys.argv[1], sinks=[], keeper="inline")
rng, size = np.random.default_rng(0), 250_000
for start in range(0, {rows}, size):
    n = min(size, {rows} - start)
    run.log_many({{f"k{{i}}": rng.standard_normal(n) for i in range({keys})}}, env_step=np.arange(start, start + n))
for start in range(0, {samples}, 1000):
    items = [f"what is {{i}} and {{i * 7919 % 10007}}?" for i in range(start, start + 1000)]
    run.log_samples(items, reward=rng.standard_normal(1000), env_step=start)
run.finish()
print(run.folder)
"""

_READ = """
import json, resource, sys, time
from rollbook.book.book import Book
book = Book(sys.argv[1])
def ask():
    return {expression}
seconds = []
for _ in range(1 + {repeat}):
    begin = time.process_time()
    ask()
    seconds.append(time.process_time() - begin)
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""

_LIVE = """
import json, sys, time, rollbook
from rollbook.book.book import Book
run = rollbook.init("bench", "live", dir=sys.argv[1], sinks=[], keeper="inline")
for i in range(int(sys.argv[2])):
    run.log_episode(episode_id=f"e{i}", length=i, env_step=i, **{"return": 1.0, "seed": i})
book = Book(run.folder)
begin = time.process_time()
book.episodes()
print(json.dumps((time.process_time() - begin) / int(sys.argv[2]) * 1e6))
run.finish()
"""


def _python(context: Context, code: str, *arguments: str) -> str:
    return harness.python(context.root, "-c", code, *arguments)


def _made(context: Context) -> str:
    """The large run; made once."""
    known = _folders.get(context.root)
    if known is None:
        code = _MAKE.format(rows=context.size(ROWS), keys=KEYS, samples=context.size(SAMPLES))
        known = _folders[context.root] = _python(context, code, tempfile.mkdtemp(dir=context.root))
    return known


_folders: dict[str, str] = {}


def _ms(seconds: list[float]) -> list[float]:
    return [one * 1e3 for one in seconds]


def _in_turns(context: Context, code: str, sizes: tuple[list[str], ...]) -> list[list[Any]]:
    """What a program prints for each of the sizes, three times at most."""
    turns = [
        [json.loads(_python(context, code, tempfile.mkdtemp(dir=context.root), *size)) for size in sizes]
        for _ in range(min(3, context.repeat))
    ]
    return [list(own) for own in zip(*turns, strict=True)]


def _read(context: Context, expression: str) -> tuple[list[float], float, str]:
    """(CPU seconds of each read but the first; MiB at most; both and the first, in words).

    The first also loads modules and opens files: the time of a program, not of a read.
    """
    code = _READ.format(expression=expression, repeat=context.repeat)
    (first, *seconds), memory = json.loads(_python(context, code, _made(context)))
    return seconds, memory, f"{memory:.0f} MiB; the first with all imports {1e3 * first:.0f} ms"


def row_15(context: Context) -> Iterator[Line]:
    """One average over one column of 10^8 numbers."""
    seconds, memory, said = _read(context, 'book.sql("select avg(k5), count(*) from metrics").fetchall()')
    yield Line(15, "book.sql, an average in 10^8 numbers, CPU", seconds, "s", goal=1, note=said)
    yield Line(15, "book.sql, an average in 10^8 numbers, memory", memory, "MiB", goal=1024)


def row_16(context: Context) -> Iterator[Line]:
    """A point and a range in 10^8 numbers; a search in two million samples."""
    middle = context.size(ROWS) // 2
    seconds, _memory, said = _read(context, f"book.at(env_step={middle})")
    yield Line(16, "book.at in 10^8 numbers, CPU", _ms(seconds), "ms", goal=50, note=said)
    seconds, _memory, said = _read(context, f'book.metrics(["k1"], x="env_step", start={middle}, stop={middle + 999})')
    yield Line(16, "999 rows of a key in 10^8 numbers, CPU", _ms(seconds), "ms", goal=50, note=said)
    seconds, _memory, said = _read(context, "book.samples(where=\"item like '%31415%'\")")
    yield Line(16, "samples(where=like) of 2M rows, CPU", seconds, "s", goal=0.5, note=said)


_BATCH = """
import json, sys, time, numpy as np, rollbook
with rollbook.init("bench", "keys", dir=sys.argv[1], sinks=[], keeper="inline") as run:
    rng = np.random.default_rng(0)
    run.log_many({f"m/k{i:03d}": rng.normal(size=20_000) for i in range(200)}, env_step=np.arange(20_000))
keys = [f"m/k{i:03d}" for i in range(200)]
def milliseconds(*asks):
    for ask in asks:
        ask()
    took = [[] for _ in asks]
    for _ in range(5):
        for ask, own in zip(asks, took):
            begin = time.process_time()
            ask()
            own.append((time.process_time() - begin) * 1e3)
    return took
def each():
    return [rollbook.open(sys.argv[1])[0].series(key, points=2000) for key in keys]
book = rollbook.open(sys.argv[1])[0]
def one_book():
    return [book.series(key, points=2000) for key in keys]
print(json.dumps(milliseconds(lambda: book.batch(keys, points=2000), each, one_book)))
"""


def row_17(context: Context) -> Iterator[Line]:
    """200 keys of one run, 20,000 rows each, as 2,000 points: at once, and key by key."""
    batch, opened, each = json.loads(_python(context, _BATCH, tempfile.mkdtemp(dir=context.root)))
    what = "200 series of 20,000 rows, CPU"
    yield Line(17, what, batch, "ms", "opening and asking for each", opened, 1 / 8)
    yield Line(17, what, batch, "ms", "asking one book for each", each)


def row_18(context: Context) -> Iterator[Line]:
    """The first read of a live run, a frame, as frames grow."""
    few, many = _in_turns(context, _LIVE, (["2000"], [f"{context.size(32_000)}"]))
    yield Line(18, "first read of 32,000 live frames, a frame", many, "us", "of 2,000", few, 1.25)


_WIDE = """
import json, os, sys, rollbook
run = rollbook.init("bench", "wide", dir=sys.argv[1], sinks=[], keeper="inline")
sizes = [int(word) for word in sys.argv[2:]]
for n in sizes:
    run.log({f"s{n}/k{i}": float(i) for i in range(n)}, env_step=n)
before = os.times()
run.finish()
after = os.times()
cpu = after.children_user + after.children_system - before.children_user - before.children_system
print(json.dumps(cpu / sum(sizes) * 1e6))
"""

_SETS = """
import json, sys, time, rollbook
from rollbook.book.book import Book
with rollbook.init("bench", "sets", dir=sys.argv[1], sinks=[], keeper="inline") as run:
    for i in range(int(sys.argv[2])):
        run.log({f"k{i}": 1.0, "loss": 0.5}, env_step=i)
    begin = time.process_time()
    live = len(Book(run.folder).keys())
    middle = time.process_time()
begun = time.process_time()
sealed = len(Book(run.folder).keys())
assert live == sealed > int(sys.argv[2])
print(json.dumps([middle - begin, time.process_time() - begun]))
"""


def row_19(context: Context) -> Iterator[Line]:
    """Sealing two rows of very many keys, a key: is it linear?"""
    few, many = _in_turns(context, _WIDE, (["20000", "14000"], [f"{context.size(n)}" for n in (200_000, 140_000)]))
    yield Line(19, "sealing rows of 200,000 and 140,000 keys, a key", many, "us", "of 20,000 and 14,000", few, 1.5)


def row_20(context: Context) -> Iterator[Line]:
    """The keys of a run with 10,000 key sets."""
    turns = _in_turns(context, _SETS, ([f"{context.size(10_000)}"],))[0]
    live, sealed = ([1e3 * turn[n] for turn in turns] for n in (0, 1))
    yield Line(20, "keys() of 10,000 key sets, live, CPU", live, "ms", goal=1000)
    yield Line(20, "keys() of 10,000 key sets, sealed, CPU", sealed, "ms", goal=100)
