"""One function over many runs, on threads, processes or Ray, with retries; failures do not affect other runs."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, NamedTuple

from rollbook.errors import BadInput, MissingExtra
from rollbook.system.daemon_threads import DaemonThreads
from rollbook.system.guard import ours
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    import ray

_LOOK_SECONDS = 0.25


class Answer(NamedTuple):
    """The result of one run.

    Attributes:
      run, path: its id and its folder.
      value: what the function returned; None if it failed.
      error: "", or the last exception, or how its process ended.
      tries: how often the function was called; 0: not called before the time was up. If a process with several calls
        dies, any of them may be the cause: they are not counted, and each is repeated in a separate process.
    """

    run: str
    path: str
    value: Any
    error: str
    tries: int

    @property
    def is_there(self) -> bool:
        """Whether there is a value."""
        return self.tries > 0 and not self.error


class Answers(Sequence[Answer]):
    """The answers of all runs, in the order of the runs.

    Args:
      answers: one per run.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = list(answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __getitem__(self, index: Any) -> Any:
        return self._answers[index]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    @property
    def values(self) -> list[Any]:
        """The returned values, in the order of the runs."""
        return [answer.value for answer in self._answers if answer.is_there]

    @property
    def failed(self) -> list[Answer]:
        """The answers that failed on every try, with the reason."""
        return [answer for answer in self._answers if answer.error and answer.tries]

    @property
    def missing(self) -> list[Answer]:
        """The answers that were not done in time."""
        return [answer for answer in self._answers if not answer.tries]

    def __repr__(self) -> str:
        return f"<Answers of {len(self.values)} of {amount(len(self), 'run')}, {len(self.failed)} failed>"


def map_runs(
    rows: Sequence[Mapping[str, object]],
    function: Callable[[Any], object],
    *,
    on: str,
    workers: int | None,
    retries: int,
    seconds: float | None,
    progress: Callable[[int, int, Answer], object] | None,
) -> Answers:
    """See `RunSet.map`."""
    if not callable(function):
        raise BadInput(f"map({function!r:.80}): no function.", "Pass one that takes a Book, such as runs.map(score)")
    if type(retries) is not int or retries < 0:
        raise BadInput(f"map(retries={retries!r}): a whole number, 0 or more")
    if workers is not None and (type(workers) is not int or workers < 1):
        raise BadInput(f"map(workers={workers!r}): a whole number, 1 or more")
    if on not in _ENGINES:
        raise BadInput(f"map(on={on!r}): choose one of {', '.join(_ENGINES)}")
    until = None if seconds is None else time.monotonic() + seconds
    at_once = workers or min(max(1, len(rows)), (os.cpu_count() or 1) * (4 if on == "threads" else 1))
    engine = _ENGINES[on](function, at_once)
    paths = [str(row["path"]) for row in rows]
    answers = [Answer(str(row["id"]), path, None, "", 0) for row, path in zip(rows, paths, strict=True)]
    todo, done = deque(range(len(rows))), 0
    try:
        while (todo or engine.under_way) and (until is None or time.monotonic() < until):
            while todo and len(engine.under_way) < at_once:
                engine.begin(todo[0], paths[todo[0]])
                todo.popleft()
            left = _LOOK_SECONDS if until is None else min(_LOOK_SECONDS, max(0.0, until - time.monotonic()))
            for index, value, error in engine.ended(left):
                if error is None:
                    todo.append(index)
                    continue
                tries = answers[index].tries + 1
                answers[index] = answers[index]._replace(value=value, error=error, tries=tries)
                if error and tries <= retries:
                    todo.append(index)
                    continue
                done += 1
                if progress is not None:
                    progress(done, len(rows), answers[index])
    finally:
        engine.stop()
    return Answers(answers)


def _call(function: Callable[[Any], object], path: str) -> object:
    from rollbook.book import Book

    return function(Book(path))


class _Local:
    """Threads or processes of this host, with at most one call per worker at a time."""

    def __init__(self, function: Callable[[Any], object], workers: int) -> None:
        self._function, self._workers = function, workers
        self._pool: Executor = self._make(workers)
        self._alone: dict[int, Executor] = {}
        self._suspects: set[int] = set()
        self.under_way: dict[Future[object], int] = {}

    def _make(self, workers: int) -> Executor:
        return DaemonThreads(workers, "rollbook-map")

    def begin(self, index: int, path: str) -> None:
        """Start one call. A call that was running when a process died gets a separate process."""
        pool = self._pool
        if index in self._suspects:
            pool = self._alone[index] = self._make(1)
        try:
            self.under_way[pool.submit(_call, self._function, path)] = index
        except BrokenProcessPool:  # it broke since the last poll
            self._pool.shutdown(wait=False)
            self._pool = self._make(self._workers)
            self.under_way[self._pool.submit(_call, self._function, path)] = index

    def ended(self, seconds: float) -> Iterator[tuple[int, Any, str | None]]:
        """(index, value, error) of the calls that ended within this time; error None: the cause is unknown."""
        ready, _ = wait(self.under_way, timeout=seconds, return_when=FIRST_COMPLETED)
        for future in ready:
            index = self.under_way.pop(future)
            alone = self._alone.pop(index, None)
            if alone is not None:
                alone.shutdown(wait=False)
            error: str | None = ""
            try:
                value = future.result()
            except BrokenProcessPool:
                value, error = None, "its process died"
                if alone is None and self._workers > 1:
                    self._suspects.add(index)
                    error = None
            except ours(Exception) as err:
                value, error = None, f"{type(err).__name__}: {err}"
            yield index, value, error

    def stop(self) -> None:
        """Start nothing more. Processes are ended; threads finish their call, and the end of the program waits
        a few seconds for that."""
        for pool in (self._pool, *self._alone.values()):
            pool.shutdown(wait=False, cancel_futures=True)


class _Processes(_Local):
    """Processes of this host.

    A pool notices the end only of processes that existed when it last woke up. CPython's `submit` wakes it before it
    starts another process; if that process dies and nothing else ends, no one notices. So it is woken once more.
    """

    def __init__(self, function: Callable[[Any], object], workers: int) -> None:
        super().__init__(function, workers)
        self._has_begun = False

    def begin(self, index: int, path: str) -> None:
        super().begin(index, path)
        self._has_begun = True

    def ended(self, seconds: float) -> Iterator[tuple[int, Any, str | None]]:
        nothing = True
        for answer in super().ended(seconds):
            nothing = False
            yield answer
        if nothing and self._has_begun:
            self._has_begun = False
            with suppress(BrokenProcessPool):
                self._pool.submit(int)

    def _make(self, workers: int) -> Executor:
        import multiprocessing

        # Spawn: a fork of a process with threads may hang, and must not write to a run that is open here.
        return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))

    def stop(self) -> None:
        for pool in (self._pool, *self._alone.values()):
            for process in list((getattr(pool, "_processes", None) or {}).values()) if self.under_way else ():
                process.terminate()
        super().stop()


class _Ray:
    """Tasks of a Ray cluster; all nodes need access to the runs' folders."""

    def __init__(self, function: Callable[[Any], object], workers: int) -> None:
        self._ray = _ray("runs.map(on='ray')")
        self._task = self._ray.remote(max_retries=0)(_call)
        self._function = self._ray.put(function)
        self.under_way: dict[ray.ObjectRef, int] = {}

    def begin(self, index: int, path: str) -> None:
        self.under_way[self._task.remote(self._function, path)] = index

    def ended(self, seconds: float) -> Iterator[tuple[int, Any, str]]:
        ready, _ = self._ray.wait(list(self.under_way), num_returns=1, timeout=seconds)
        for reference in ready:
            index = self.under_way.pop(reference)
            try:
                yield index, self._ray.get(reference), ""
            except self._ray.exceptions.RayTaskError as err:
                cause = err.cause if getattr(err, "cause", None) is not None else err
                yield index, None, f"{type(cause).__name__}: {cause}"
            except self._ray.exceptions.RayError as err:
                yield index, None, f"its process died ({type(err).__name__})"

    def stop(self) -> None:
        for reference in self.under_way:
            self._ray.cancel(reference, force=True)


_ENGINES: dict[str, Any] = {"threads": _Local, "processes": _Processes, "ray": _Ray}


def to_ray(rows: Sequence[Mapping[str, object]], table: str) -> ray.data.Dataset:
    """See `RunSet.to_ray`."""
    _ray("runs.to_ray()")
    import ray.data

    items = [{"path": str(row["path"]), **{name: row.get(field) for name, field in _BESIDE.items()}} for row in rows]

    def read(batch: Any) -> object:
        import pyarrow as pa

        from rollbook.book import Book

        tables = []
        for item in batch.to_pylist():
            own = Book(item["path"]).table(table)
            for name in _BESIDE:
                own = own.append_column(name, pa.array([item[name]] * own.num_rows))
            tables.append(own)
        return pa.concat_tables(tables, promote_options="permissive")

    return ray.data.from_items(items, override_num_blocks=max(1, len(items))).map_batches(
        read, batch_format="pyarrow", batch_size=1
    )


_BESIDE = {"run": "id", "project": "project", "run_name": "name", "run_seed": "seed"}


def _ray(asked: str) -> ModuleType:
    try:
        import ray
    except ImportError:
        raise MissingExtra(f"{asked} needs Ray, which is not installed here.", "pip install 'ray[data]'") from None
    loaded: ModuleType = ray
    return loaded
