"""The collectors of LightZero and DI-engine, reporting through a CollectorLog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from importlib import import_module
from typing import Any

from rollbook.adapters.lightzero.collector import CollectorLog
from rollbook.adapters.lightzero.experiment import Experiment
from rollbook.system.bill import counted
from rollbook.system.guard import handled_by
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ding.worker import ISerialCollector

_WHERE = {
    "lzero.worker": ("MuZeroCollector", "MuZeroSegmentCollector", "AlphaZeroCollector"),
    "ding.worker": ("SampleSerialCollector", "EpisodeSerialCollector"),
}
_KNOWN = ("reward", "step", "train_sample", "time")


def collector_classes() -> list[Any]:
    """The installed ones of their collectors."""
    return _classes(_WHERE, ("collect", "_output_log"))


def _classes(where: dict[str, tuple[str, ...]], methods: tuple[str, ...]) -> list[object]:
    classes = []
    for title, names in where.items():
        try:
            module = import_module(title)
        except ModuleNotFoundError:
            continue
        for name in names:
            cls = getattr(module, name, None)
            if cls is not None and all(method in cls.__dict__ for method in methods):
                classes.append(cls)
    return classes


@contextmanager
def lent(counted: Callable[[], handled_by], host: Any, **ours: object) -> Iterator[None]:
    """Put our objects under these names of the host for a while, then its own again.

    Args:
      counted: makes the context in which the host is asked, whose failures it counts.
      host: the object.
      ours: name of an attribute -> its value meanwhile.
    """
    before: list[tuple[str, bool, object]] = []
    with counted():
        for name, instead in ours.items():
            is_its_own = name in vars(host) or hasattr(getattr(type(host), name, None), "__set__")
            own = (name, is_its_own, getattr(host, name))
            setattr(host, name, instead)
            before.append(own)
    try:
        yield
    finally:
        for name, is_its_own, value in before:
            with counted():
                if is_its_own:
                    setattr(host, name, value)
                else:  # the class has it
                    delattr(host, name)


class CollectorBridge:
    """Turns a collector's episodes into reports."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._logs: dict[str, CollectorLog] = {}
        self._earlier: dict[str, dict[str, float]] = {}  # totals of earlier attempts
        self._last_iter: dict[str, int] = {}
        self._taken: dict[int, int] = {}  # id of a collector -> how many of its pending episodes were taken

    def log(self, instance: str) -> CollectorLog:
        """The log of the collector of that name."""
        if instance not in self._logs:
            log = self._logs[instance] = CollectorLog(self._experiment, instance)
            self._earlier[instance] = dict(log.totals)
        return self._logs[instance]

    def around_collect(self, theirs: Callable[..., object]) -> Callable[..., object]:
        """`collect`, timed by wall time."""

        @wraps(theirs)
        def collect(collector: ISerialCollector, *args: object, **kwargs: object) -> object:
            log = self._log_of(collector)
            with nullcontext() if log is None else log.collecting():
                return theirs(collector, *args, **kwargs)

        return collect

    def around_output(self, theirs: Callable[..., object]) -> Callable[..., object]:
        """`_output_log`: their bookkeeping still runs; our numbers are written."""

        @wraps(theirs)
        def output(collector: ISerialCollector, train_iter: int) -> object:
            log, before, captured = self._log_of(collector), 0, None
            with self._counted():
                if log is not None:
                    self._last_iter[log.instance_name] = train_iter
                    self._take(collector, log)
                    before = len(collector._episode_info)
                    captured = _Captured(collector._logger)
            if log is None or captured is None:
                return theirs(collector, train_iter)
            with lent(self._counted, collector, _logger=captured, _tb_logger=captured):
                answer = theirs(collector, train_iter)
            with self._counted():
                self._take_totals(collector, log)
                if before and not collector._episode_info:  # they reported and cleared their episodes
                    self._taken[id(collector)] = 0
                    searched = {name: captured.scalars.get(name) for name in ("visit_entropy", "completed_value")}
                    log.report(
                        self._experiment.counters("gradient_step", train_iter),
                        more={k: v for k, v in searched.items() if scalar_of(v) is not None},
                    )
            return answer

        return output

    def _counted(self) -> handled_by:
        return counted(self._experiment.run.count, "lightzero_collector", "episodes could not be read")

    def _log_of(self, collector: ISerialCollector) -> CollectorLog | None:
        """The log of a collector; None, counted, if the collector does not say its name."""
        with self._counted():
            return self.log(collector._instance_name)
        return None

    def finish(self) -> None:
        """Report what was collected since the last report: they wait for at least 100 iterations."""
        for instance, log in self._logs.items():
            if log.pending:
                log.report(self._experiment.counters("gradient_step", self._last_iter.get(instance, 0)))

    def _take_totals(self, collector: object, log: CollectorLog) -> None:
        """Their counters include steps of unfinished episodes; ours include earlier attempts."""
        for name in ("total_envstep_count", "total_train_sample_count", "total_episode_count"):
            counted = getattr(collector, f"_{name}", None)
            if isinstance(counted, int):
                log.totals[name] = self._earlier[log.instance_name].get(name, 0) + counted

    def _take(self, collector: ISerialCollector, log: CollectorLog) -> None:
        episodes = collector._episode_info
        taken = self._taken.get(id(collector), 0)
        for episode in episodes[taken if taken <= len(episodes) else 0 :]:
            more = {name: value for name, value in episode.items() if name not in _KNOWN}
            log.episode(episode["reward"], episode["step"], episode.get("train_sample"), episode.get("time"), **more)
        self._taken[id(collector)] = len(episodes)


class _Captured:
    """Replaces a collector's text logger and writer: keeps the numbers, drops the text."""

    def __init__(self, text: Any) -> None:
        self._text = text
        self.scalars: dict[str, Any] = {}

    def add_scalar(self, tag: str, value: object, step: int | None = None, **_: object) -> None:
        del step
        self.scalars[tag.partition("/")[2]] = value

    def info(self, message: object, *args: object) -> None:
        if not str(message).startswith(("collect end", "Collector")):
            self._text.info(message, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._text, name)
