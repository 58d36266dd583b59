"""What logging, opening and keeping cost, counted without a clock: calls, bytes, files, modules.

The table of benchmarks/RESULTS.md is measured now and then, on an idle machine; what stands here fails at once. Each
ceiling lies a little above what was counted. A change that needs more raises it and says so in its commit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.health import DEFAULT
from rollbook.keeper.main import Keeper
from rollbook.keeper.rules import Rules, _RuleBook
from rollbook.sinks import Memory, filters
from rollbook.testing.rows import some_run, training_rows
from waiting import until

TRAINING = (
    "train/loss",
    "train/value_loss",
    "train/policy_gradient_loss",
    "train/entropy_loss",
    "train/approx_kl",
    "train/explained_variance",
    "rollout/ep_rew_mean",
    "time/fps",
)
KEYS = [*TRAINING, *(f"m/k{i:02d}" for i in range(12))]


def row(n: int) -> dict[str, float]:
    """Twenty numbers of a healthy training; none repeats itself."""
    wave = (n * 0.6180339887) % 1.0
    training = (wave, 1.0 + wave, wave - 0.5, -0.6 - 0.1 * wave, 0.01 * wave, 0.5 + 0.4 * wave, float(n), 900.0 + wave)
    return dict(zip(KEYS, (*training, *(wave + i for i in range(12))), strict=True))


def calls(work: Callable[[], object]) -> tuple[int, int]:
    """(calls of Python functions, calls of C functions) while `work` runs in this thread."""
    counted = [0, 0]

    def count(_frame: object, event: str, _argument: object) -> None:
        if event == "call":
            counted[0] += 1
        elif event == "c_call":
            counted[1] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted[0], counted[1]


def blocks(work: Callable[[], object]) -> int:
    """How many more blocks of memory Python holds after `work`."""
    before = sys.getallocatedblocks()
    work()
    return sys.getallocatedblocks() - before


@pytest.fixture
def run(tmp_path: Path) -> Any:
    with rollbook.init("cost", dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        run._parts.ticker.stop()  # counted is what `log` does, in its own thread
        yield run


def test_a_log_is_one_call_of_ours_and_a_few_of_the_interpreters(run: Any) -> None:
    rows = [row(n) for n in range(2_100)]
    log = run.log
    for n in range(100):
        log(rows[n], env_step=n)

    def steady() -> None:
        for n in range(100, 2_100):
            log(rows[n], env_step=n)

    python, c = calls(steady)
    # The rest is the few rows at which a segment is full. Rows 1 and 2 of the table.
    assert python <= 2_000 * 1.5, f"{python / 2_000:.2f} Python calls a row"
    assert c <= 2_000 * 6, f"{c / 2_000:.2f} C calls a row"


def test_logging_holds_no_memory(run: Any) -> None:
    one = row(1)
    for n in range(3_000):
        run.log(one, env_step=n)

    def steady() -> None:
        for n in range(3_000, 13_000):
            run.log(one, env_step=n)

    assert blocks(steady) <= 100  # row 8


def test_an_episode_is_a_few_dozen_calls_and_a_step_of_it_one(run: Any) -> None:
    import gymnasium

    from rollbook.capture.gym import RecordEpisodes

    class Plain(gymnasium.Env[int, int]):
        observation_space = action_space = gymnasium.spaces.Discrete(2)

        def __init__(self, length: int) -> None:
            self.length, self.left = length, 0

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            self.left = self.length
            return 0, {}

        def step(self, action: int) -> Any:
            self.left -= 1
            return 0, 1.0, not self.left, False, {}

    def episodes(env: Any) -> Callable[[], None]:
        def play() -> None:
            for _ in range(50):
                env.reset()
                while not env.step(0)[2]:
                    pass

        return play

    found = []
    for length in (10, 110):
        bare, recorded = episodes(Plain(length)), episodes(RecordEpisodes(Plain(length), run))
        recorded()  # the first rows of a key set take the slow path
        found.append((calls(recorded)[0] - calls(bare)[0]) / 50)
    a_step = (found[1] - found[0]) / 100
    # Row E2 of the table: what an episode costs besides its steps.
    assert a_step == 1.0, f"{a_step:.2f} Python calls a step"
    assert found[0] - 10 * a_step <= 50, f"{found[0] - 10 * a_step:.1f} Python calls an episode"


def test_a_row_takes_its_words_and_no_more(run: Any) -> None:
    before = journal_bytes(run.folder)
    for n in range(5_000):
        run.log(row(n), env_step=n)
    width = 8 * (len(run.internals.writer.clocks) + 1 + 20 + 1)
    largest = 2 * 1024 * 1024  # one segment begun and one ahead of need
    assert journal_bytes(run.folder) - before <= 5_000 * width + largest


def journal_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in Path(folder, "data", "journal").rglob("*") if path.is_file())


class _Alone:
    """Stands in for the thread of the rules."""

    abandoned = False

    def between(self, name: str) -> bool:
        return True


def looked_at(run: Any, first: int, rows: int) -> tuple[int, int]:
    """Calls of the reader and the default rules for so many rows, when they have seen some before."""
    rules = Rules(str(run.folder), [{"name": name} for name in DEFAULT])
    book = _RuleBook(rules, _Alone())  # type: ignore[arg-type]
    for n in range(first):
        run.log(row(n), env_step=n)
    book.look(last=True)
    for n in range(first, first + rows):
        run.log(row(n), env_step=n)
    counted = calls(lambda: book.look(last=True))
    book.close()
    assert (rules.rows, rules.skipped, rules.alerts, rules.failures) == (first + rows, 0, 0, 0)
    return counted


def test_the_default_rules_look_at_columns_and_not_at_rows(run: Any) -> None:
    python, c = looked_at(run, 1_000, 20_000)
    # Row 4 of the table: tens of calls a row when rules were shown rows.
    assert python <= 20_000 * 0.7, f"{python / 20_000:.3f} Python calls a row"
    assert c <= 20_000 * 0.042 * len(DEFAULT), f"{c / 20_000:.3f} C calls a row"


def test_a_look_at_few_rows_is_cheap_as_well(run: Any) -> None:
    """A hundred runs of ten rows a second each under one keeper: there it counts what one look costs."""
    python, c = looked_at(run, 1_000, 10)
    assert python <= 50 * len(DEFAULT), python
    assert c <= 2_350, c


def test_a_row_through_a_filter_takes_some_dozen_calls(tmp_path: Path) -> None:
    """`dataclasses.replace` asked for the fields of a row anew each time, and made a class for it: a millisecond."""
    rows = training_rows(1_000)
    for name, options in FILTERS:
        filter_ = filters.make(name, Memory(), **options)
        filter_.open(some_run(tmp_path))
        filter_.write(rows[:100])
        python, c = calls(lambda to=filter_: to.write(rows[100:]))  # type: ignore[misc]
    assert python + c <= 900 * 50, f"{name}: {(python + c) / 900:.0f} calls a row"


FILTERS: list[tuple[str, dict[str, Any]]] = [
    ("aggregate", {"keys": "return|loss"}),
    ("clocked", {}),
    ("drop_none", {}),
    ("drop_non_finite", {}),
    ("every", {"seconds": 1, "per": "key"}),
    ("merge", {}),
    ("prefix", {"prefix": "seed3/"}),
    ("rename", {"pattern": "^update/", "replace": "learner/"}),
    ("select", {"keys": "return|loss"}),
    ("smooth", {"keys": "return"}),
]


def in_a_fresh_interpreter(code: str, folder: Path) -> Any:
    """What a program prints last. No keeper of other tests lives beside it: where one does, `init` calls more."""
    own = {"PYTHONPATH": str(Path(rollbook.__file__).parent.parent), "ROLLBOOK_RUNTIME_DIR": str(folder / "keepers")}
    environment = {**os.environ, **own}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


OPENING = """
import json, sys
before = set(sys.modules)
counted = [0]
def count(frame, event, _argument):
    counted[0] += event == "call" and "rollbook" in frame.f_globals.get("__name__", "")
sys.setprofile(count)
import rollbook
run = rollbook.init("cost", dir="runs", sinks=[])
sys.setprofile(None)
loaded = sorted(set(sys.modules) - before)
run.finish()
print(json.dumps([loaded, counted[0]]))
"""


def test_import_and_init_load_few_modules(tmp_path: Path) -> None:
    loaded, python = in_a_fresh_interpreter(OPENING, tmp_path)
    ours = [name for name in loaded if name.startswith("rollbook")]
    assert len(ours) <= 107, len(ours)  # row 7
    assert len(loaded) <= 220, len(loaded)
    assert python <= 905, python


def test_an_idle_keeper_loads_nothing_for_the_rules_and_one_at_work_no_numpy(tmp_path: Path) -> None:
    code = (
        "import json, sys, threading\n"
        "from rollbook.keeper.rules import Rules\n"
        "from rollbook.health import DEFAULT\n"
        "Rules('nowhere', [{'name': name} for name in DEFAULT]).step({})\n"
        "idle = sorted(sys.modules)\n"
        "import rollbook\n"
        "run = rollbook.init('cost', dir='runs', sinks=[], keeper='inline', rules=())\n"
        "rules = Rules(run.folder, [{'name': name} for name in DEFAULT])\n"
        "for n in range(500): run.log({'train/loss': float(n)}, env_step=n)\n"
        "while not rules.finish(): threading.Event().wait(0.01)\n"
        "print(json.dumps([idle, sorted(sys.modules), rules.rows]))\n"
    )
    idle, at_work, rows = in_a_fresh_interpreter(code, tmp_path)
    assert rows == 500
    assert not {"rollbook.journal.reader", "rollbook.health.kl", "rollbook.schema.columns"} & set(idle)
    assert not {"numpy", "pyarrow", "duckdb"} & set(at_work)


def test_a_keeper_that_finds_nothing_new_does_little(tmp_path: Path) -> None:
    with rollbook.init("cost", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.log(row(0), env_step=0)
        keeper = Keeper(run.folder)
        try:
            for _ in range(3):
                keeper.step()
            until(lambda: keeper._rules._looker is not None and not keeper._rules._looker.busy)
            keeper.step()
            python, c = min(calls(keeper.step) for _ in range(5))  # what is due every few seconds may fall into one
        finally:
            keeper.leave()
    assert python <= 250, python  # row 28
    assert c <= 250, c
