"""What holds for all tests."""

from __future__ import annotations

import atexit
import functools
import gc
import math
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import cases
from forked_programs import Interpreter
from left_behind import children
from rollbook.keeper import child, launch
from rollbook.keeper.main import Keeper
from rollbook.run import current, start_and_finish
from rollbook.run.origin import provenance
from rollbook.system.tuning import TUNING
from sealing_forks import VARIABLE, forking, keeper_program, sealing_here, started_server
from waiting import PATIENCE, until

PAGE = Path(__file__).parent / "page"

# Tests run side by side: the matrix library's own threads wait for each other by spinning. It is not loaded yet.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def lie_in_memory(folder: str = "/dev/shm", least_free: int = 4 << 30) -> None:
    """Have temporary folders in a file system in memory, if there is one with space: a run makes dozens of small
    files, which cost half its processor time on a disk. $TMPDIR, if set, is where they lie. Those of tests that failed
    stay; what a test leaves elsewhere goes with this process."""
    if "TMPDIR" in os.environ or not os.access(folder, os.W_OK | os.X_OK):
        return
    runs_programs = not os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0)
    if not runs_programs or shutil.disk_usage(folder).free < least_free:
        return
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)
    os.environ["TMPDIR"] = made = tempfile.mkdtemp(prefix="rollbook-tests-", dir=folder)
    tempfile.tempdir = None  # it is asked again
    process = os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # not where a fork of it ends
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(remove)


lie_in_memory()

# A shell that starts the tests in the background ignores Ctrl-C, nohup a hangup; what is ignored is handed down, and no
# program that a test interrupts would end.
for _name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
    if (_number := getattr(signal, _name, None)) and signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _name == "SIGINT" else signal.SIG_DFL)

try:
    import hypothesis
except ImportError:  # the environments of the frameworks run some of these tests without it
    pass
else:
    # A busy machine makes nothing red: how long an example takes says nothing about whether it is right. Nor does luck:
    # the same code is asked the same. New examples are looked for by `make test-long ARGS="--hypothesis-profile new"`.
    hypothesis.settings.register_profile("rollbook", deadline=None, max_examples=12, derandomize=True)
    hypothesis.settings.register_profile("long", deadline=None, max_examples=300, derandomize=True)  # make test-long
    hypothesis.settings.register_profile("new", deadline=None, max_examples=2000)
    hypothesis.settings.load_profile("rollbook")
    # Nor do examples depend on which of our modules the tests before have imported: hypothesis would parse each of them
    # to draw numbers and words that are in it.
    if (providers := sys.modules.get("hypothesis.internal.conjecture.providers")) is not None:
        vars(providers)["is_local_module_file"] = lambda _path: False


def settings_of_the_process() -> dict[str, object]:
    """What one test can change for all that come after it, with nothing to show where their trouble comes from."""
    return {
        "switch interval": sys.getswitchinterval(),
        "recursion limit": sys.getrecursionlimit(),
        "collects garbage": gc.isenabled(),
    }


SETTINGS = settings_of_the_process()


def pytest_configure(config: pytest.Config) -> None:
    """Cases that are left out anyway need not be made."""
    cases.long_ones_are_asked = "not long" not in config.option.markexpr


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Nor need the tests of the page be imported."""
    return True if collection_path == PAGE and "not page" in config.option.markexpr else None


def pytest_collection() -> None:
    """Thousands of tests are there to stay: the collector need not go through them again and again."""
    gc.disable()


WAITING = ("keeper", "run", "remote", "crash")
"""Rooms whose tests wait for processes and clocks more than others: at the end of all they would wait alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits begins first, in each of the shares of the tests that xdist gives to its workers."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    waiting = [item for item in items if item.path.parent.name in WAITING]
    others = [item for item in items if item.path.parent.name not in WAITING]
    items.clear()
    for number in range(workers):
        for some in (waiting, others):
            items += some[len(some) * number // workers : len(some) * (number + 1) // workers]


def pytest_collection_finish() -> None:
    """It begins again with what tests make, a twentieth as often: they come and go, and keep little."""
    gc.freeze()
    gc.set_threshold(14_000, 10, 10)
    gc.enable()
    assert settings_of_the_process() == SETTINGS, "importing the tests has changed this process for all of them"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """$ROLLBOOK_TEST_COSTS: a file that gets the processor time of each test, fixtures and ended children included."""
    if not (path := os.environ.get("ROLLBOOK_TEST_COSTS")):
        return (yield)
    before = sum(os.times()[:4])
    answer = yield
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{sum(os.times()[:4]) - before:8.3f} {item.nodeid}\n")
    return answer


@pytest.fixture(scope="session")
def _no_process_is_left_behind() -> Iterator[None]:
    """Neither by a test, nor by a fixture. Those that answer SQL are kept between the tests: a start takes long."""
    yield
    if (answering := sys.modules.get("rollbook.server.shared.sql")) is not None:
        answering.end_idle()
    try:
        until(lambda: not children())  # what the last test started may be about to end
    except AssertionError:
        raise AssertionError("\n".join(children())) from None


@pytest.fixture(autouse=True, scope="session")
def _sealing_children_have_pyarrow_loaded(_no_process_is_left_behind: None) -> Iterator[None]:
    """A run that is finished is sealed here or by a fork; see sealing_forks."""
    if not hasattr(os, "fork"):
        yield
        return
    with started_server() as variables, pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "start_child", forking(child.start_child))
        patch.setattr(Keeper, "run_to_end", sealing_here(Keeper.run_to_end))
        patch.setattr(launch, "_program", keeper_program(launch._program))
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(autouse=True, scope="session")
def _tests_have_their_own_keepers_and_caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs share a keeper; a test that ends or stops it has one of its own. What is cached is not the developer's, and
    does not lie in the home that a test has. Matplotlib keeps its list of fonts, which takes seconds to make."""
    fonts = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "matplotlib")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROLLBOOK_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("MPLCONFIGDIR", os.environ.get("MPLCONFIGDIR", fonts))
        yield


@pytest.fixture(autouse=True, scope="session")
def _where_thousands_of_runs_came_from_is_asked_once() -> Iterator[None]:
    """Each run asks git, in three programs or more, for the state of the code that started it, and notes hundreds of
    packages: here git is asked once about this checkout, for no patch, and once about a folder of no repository; few
    packages are noted. About repositories that a test makes it is asked as ever, and by `real_git` always."""
    collect, ask, checkout = provenance.collect, provenance._git, os.path.dirname(os.path.dirname(__file__))
    known: dict[bool, dict[str, Any] | None] = {}

    def is_in_repository(folder: str) -> bool:
        path = Path(os.path.abspath(folder))
        return any(os.path.lexists(each / ".git") for each in (path, *path.parents))

    @functools.wraps(ask)
    def ask_once(folder: str, seconds: float, patched: Any) -> dict[str, Any] | None:
        if (is_elsewhere := os.path.abspath(folder) != checkout) and is_in_repository(folder):
            return ask(folder, seconds, patched)
        if is_elsewhere not in known:
            known[is_elsewhere] = ask(folder, seconds, None)
        found = known[is_elsewhere]
        return found and dict(found)

    def collect_few(*asked: Any, **options: Any) -> dict[str, Any]:
        found = collect(*asked, **options)
        packages: Any = found.get("packages")
        noted = {name: packages[name] for name in ("numpy", "pyarrow") if name in packages} if packages else packages
        return {**found, "packages": noted}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "_git", ask_once)
        patch.setattr(provenance, "collect", collect_few)
        yield


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Interpreter]:
    """Starts programs: each a fork of one process that has imported rollbook."""
    made = Interpreter()
    yield made
    made.end()


@pytest.fixture
def real_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this test git is asked whatever the folder."""
    monkeypatch.setattr(provenance, "_git", provenance._git.__wrapped__)  # type: ignore[attr-defined]


@pytest.fixture
def real_sealing_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this test a sealing child is the process that it is outside of tests."""
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def sealing_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this test a child seals what `finish()` waits for: the process of the test is interrupted or watched."""
    monkeypatch.setattr(Keeper, "run_to_end", Keeper.run_to_end.__wrapped__)  # type: ignore[attr-defined]


@pytest.fixture
def nothing_is_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`finish()` of a run without a keeper process leaves its rows in the journal, unsealed."""
    monkeypatch.setattr(start_and_finish, "_let_keeper_finish", lambda run: None)


@pytest.fixture
def sealed() -> None:
    """In this test `finish()` seals, in a room in which it does not otherwise."""


@pytest.fixture(autouse=True)
def _a_test_leaves_the_process_as_it_was() -> Iterator[None]:
    before = settings_of_the_process()
    yield
    assert settings_of_the_process() == before


@pytest.fixture(autouse=True)
def _what_a_test_leaves_open_is_nothing_to_the_next_one() -> Iterator[None]:
    """Neither a run that was not finished, nor what it told its child processes: tests come in any order."""
    told = {name: os.environ.pop(name) for name in ("ROLLBOOK_RUN_ID", "ROLLBOOK_RUN_PID") if name in os.environ}
    before = current.opened.copy()
    yield
    current.opened[:] = [run for run in before if run.status == "running"]  # a test may end its module's run
    for name in ("ROLLBOOK_RUN_ID", "ROLLBOOK_RUN_PID"):
        os.environ.pop(name, None)
    os.environ.update(told)


@pytest.fixture(autouse=True, scope="session")
def _slow_machines_change_nothing() -> Iterator[None]:
    """A run writes down its own cost when it has lasted a second, finish() leaves the keeper alone after ten, and what
    is sealed waits for the disk: no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, lambda _fd: None, raising=False)
        with TUNING.changed(first_cost_seconds=math.inf, finish_seconds=PATIENCE):
            yield


@pytest.fixture
def tuned() -> Iterator[Callable[..., None]]:
    """`tuned(seal_bytes=1)`: other sizes and waits (`rollbook.system.tuning`) until the test ends."""
    with ExitStack() as stack:
        yield lambda **values: stack.enter_context(TUNING.changed(**values))
