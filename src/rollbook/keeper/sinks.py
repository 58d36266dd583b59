"""The sinks of one run, fed by a keeper or the training process: files in turn, services in threads."""

from __future__ import annotations

import os
import threading
import time

from rollbook.keeper.forward import Forwarder, run_info
from rollbook.system.bill import Bill
from rollbook.system.guard import ours
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.protocols import Sink

_MOST_TRIES = 2
"""A sink that fails this often in a row is reported; one failure may be a service that restarts."""

_COMMON = ("name", "options", "every_seconds", "filters", "all")


class Sinks:
    """Forwarders by name. File sinks are fed by `step`, all others by a thread each, so that nothing waits for them.

    Args:
      run_folder: the run's folder.
      specs: what plan.json lists, and sink objects.
      x: the clock for sinks with one step axis.
      report: takes (cause, words) for the log.
      inline: fed during a training; all by `step`.
      objects_apart: nevertheless give sink objects made by users a thread each: how long they take is unknown.
    """

    def __init__(
        self,
        run_folder: str,
        specs: Sequence[object],
        *,
        x: str = "",
        clock: Callable[[], float] = time.monotonic,
        report: Callable[[str, str], None] = lambda cause, words: None,
        inline: bool = False,
        objects_apart: bool = False,
    ) -> None:
        from rollbook.sinks.filters import Filter

        self._forwarders: list[Forwarder] = []
        self._threads: dict[str, _Thread] = {}
        self._unmade: dict[str, str] = {}
        taken: dict[str, int] = {}
        info = run_info(run_folder, x)
        for spec in specs:
            name = spec["name"] if isinstance(spec, dict) else type(spec).__name__
            taken[name] = taken.get(name, 0) + 1
            unique = name if taken[name] == 1 else f"{name}-{taken[name]}"
            try:
                sink, seconds = _build_with_site(spec, inline)
            except ours(Exception) as err:
                words = f"sink {unique} cannot be made ({type(err).__name__}: {err}); the others go on"
                report(f"sink:{unique}", words)
                self._unmade[unique] = words
                continue
            innermost = sink
            while isinstance(innermost, Filter):
                innermost = innermost.to
            screen = bool(getattr(innermost, "is_live", False))
            forwarder = Forwarder(
                run_folder,
                sink,
                name="" if screen else unique,
                every_seconds=seconds,
                info=info,
                this_attempt=screen,
                clock=clock,
                report=report,
            )
            forwarder.name = unique
            self._forwarders.append(forwarder)
            is_apart = not inline or (objects_apart and not isinstance(spec, dict))
            if is_apart and not forwarder.is_file():
                try:
                    self._threads[unique] = _Thread(forwarder)
                except RuntimeError:  # see rules.Rules: no thread can be started any more, so `step` feeds it
                    pass

    def __iter__(self) -> Iterator[Forwarder]:
        return iter(self._forwarders)

    def __len__(self) -> int:
        return len(self._forwarders)

    def step(self, *, flush: bool = False) -> bool:
        """Feed the file sinks. True when nothing is left for any sink, as of the last `ask_all`."""
        done = True
        for forwarder in self._forwarders:
            thread = self._threads.get(forwarder.name)
            done = (thread.drained() if thread is not None else forwarder.step(flush=flush)) and done
        return done

    def ask_all(self) -> None:
        """From now on `step` is True only once the threads have delivered everything present at this moment."""
        for thread in self._threads.values():
            thread.ask()

    def drain(self, seconds: float) -> list[str]:
        """Deliver everything present now, in one try each.

        Returns:
          The sinks that were not through after `seconds`.
        """
        until = time.monotonic() + seconds
        self.ask_all()
        self.step(flush=True)
        return [name for name, thread in self._threads.items() if not thread.is_through(until - time.monotonic())]

    def failing(self) -> list[str]:
        """The sinks whose last try failed."""
        return [forwarder.name for forwarder in self._forwarders if forwarder.failing]

    def troubles(self) -> dict[str, dict[str, object]]:
        """The sinks that get nothing: name -> {"words": why, "failures": tries in a row}. Empty if all is well."""
        troubles: dict[str, dict[str, object]] = {
            name: {"words": words, "failures": 1} for name, words in self._unmade.items()
        }
        for forwarder in self._forwarders:
            if forwarder.failed_in_a_row >= _MOST_TRIES or forwarder.is_cut_short:
                troubles[forwarder.name] = {"words": forwarder.trouble, "failures": forwarder.failed_in_a_row}
        return troubles

    def lag(self, now: float) -> Mapping[str, float]:
        """For each sink the rows delivered, tries that failed, and seconds since its newest row."""
        behind: dict[str, float] = {}
        for forwarder in self._forwarders:
            at = f"rollbook/sink/{forwarder.name}"
            behind[f"{at}/rows"] = float(forwarder.rows)
            behind[f"{at}/failures"] = float(forwarder.failures)
            if forwarder.newest:
                behind[f"{at}/lag_seconds"] = max(0.0, now - forwarder.newest)
        return behind

    def close(self, *, ended: bool, seconds: float | None = None) -> None:
        """Close all sinks. `ended`: the run is over, and sinks get a final mark if the run could not write one.

        A thread whose service hangs is abandoned after `seconds`, five if None.
        """
        until = time.monotonic() + (TUNING.close_seconds if seconds is None else seconds)
        for thread in self._threads.values():
            thread.stop(ended)
        for forwarder in self._forwarders:
            thread_of = self._threads.get(forwarder.name)
            if thread_of is not None:
                thread_of.join(max(0.0, until - time.monotonic()))
            else:
                if ended:
                    forwarder.end()
                forwarder.close()


class _Thread(threading.Thread):
    """Feeds one slow sink."""

    def __init__(self, forwarder: Forwarder) -> None:
        super().__init__(name=f"rollbook-{forwarder.name}", daemon=True)
        self._forwarder = forwarder
        self._wake = threading.Event()
        self._lock = threading.Condition()
        self._asked = self._answered = 0
        self._done = False
        self._stop_asked = self._ended = False
        self.start()

    def run(self) -> None:
        """Step every half second, and at once when asked."""
        forwarder = self._forwarder
        while not self._stop_asked:
            with self._lock:
                asked = self._asked
            try:
                done = forwarder.step(flush=asked > self._answered)
            except BaseException as err:  # no signal arrives in this thread: a SystemExit comes from the sink
                forwarder.fail(err)
                done = False
            with self._lock:
                self._answered, self._done = asked, done
                self._lock.notify_all()
            if done or forwarder.failing:
                self._wake.wait(0.5)
                self._wake.clear()
        if self._ended:
            forwarder.end()
        forwarder.close()

    def ask(self) -> None:
        """Deliver everything present now, without thinning."""
        with self._lock:
            self._asked += 1
        self._wake.set()

    def drained(self) -> bool:
        """Whether a step that began after the last `ask` left nothing behind."""
        with self._lock:
            if self._answered < self._asked:
                return False
            if self._done:
                return True
        self.ask()
        return False

    def is_through(self, seconds: float) -> bool:
        """Whether everything asked for is delivered, or has failed; waits up to this long for it."""
        with self._lock:
            asked = self._asked
            return self._lock.wait_for(
                lambda: self._answered >= asked and (self._done or self._forwarder.failing), max(0.0, seconds)
            )

    def stop(self, ended: bool) -> None:
        """Ask it to end."""
        self._ended, self._stop_asked = ended, True
        self._wake.set()


def _build_with_site(spec: object, inline: bool) -> tuple[Sink | Callable[[], Sink], float | None]:
    """Build. A keeper process starts without `site`; after a failure it tries again with it, because editable installs
    need its hooks."""
    try:
        return build(spec, inline=inline)
    except ours(Exception):
        import sys

        if not sys.flags.no_site or "site" in sys.modules:
            raise
        import site

        site.main()
        return build(spec, inline=inline)


class LocalSinks:
    """Feeds sinks from the journal's files. The terminal and files are fed in the thread that calls `step`. Each other
    object has a separate thread: one that hangs must not delay the training or its end. Nothing here raises.

    Making it costs nothing; what it needs is loaded at the first step.

    Args:
      run_folder: the run's folder.
      specs: sink objects, and {"name": "terminal", …}.
      report: takes (cause, words) of what went wrong, each cause once.
    """

    def __init__(
        self,
        run_folder: str | os.PathLike[str],
        specs: Sequence[object],
        report: Callable[[str, str], object] | None = None,
    ) -> None:
        self._run_folder, self._specs = os.fspath(run_folder), list(specs)
        self._sinks: Any = None
        self._bill = Bill(deliver=report)

    def step(self) -> None:
        """Deliver what is new, about once a second."""
        if self._ready():
            self._sinks.step()

    def settle(self, seconds: float = 0.5) -> None:
        """Deliver all that is there now, without thinning; wait so long for sinks with a thread of their own."""
        if self._ready():
            self._sinks.drain(min(seconds, TUNING.drain_seconds))

    def close(self) -> None:
        """Deliver the rest and close the sinks. Calling it twice is fine."""
        if self._ready():
            for name in self._sinks.drain(TUNING.drain_seconds):
                words = f"sink {name} has not taken all rows in {TUNING.drain_seconds:g} seconds; the run has them all"
                self._bill.report(f"sink:{name}", words)
            self._sinks.close(ended=False, seconds=1.0)
        self._sinks, self._specs = None, []

    def _ready(self) -> bool:
        if self._sinks is None and self._specs:
            self._sinks = Sinks(
                self._run_folder, self._specs, inline=True, objects_apart=True, report=self._bill.report
            )
        return self._sinks is not None


def import_for(spec: Mapping[str, Any]) -> None:
    """Import what is needed to make and feed the sink of a plan entry, except a service's own package."""
    from rollbook.sinks._registry import fact

    if not fact(spec["name"], "is_service", False):  # which loads its class
        build(spec)


def build(spec: Any, *, inline: bool = False) -> tuple[Sink | Callable[[], Sink], float | None]:
    """(the sink or a function that makes it, seconds between deliveries of newest rows or None) of one plan entry.

    An entry is a sink object, or {"name": …, "every_seconds": …, "filters": […], "all": …} with the sink's own options
    next to these or under "options". Rows are thinned by their own time, so that a file does not depend on when it was
    written. Only for a live view during the training are fewer rows read instead.

    Raises:
      UnknownOption, BadInput, MissingExtra: what `rollbook.sinks.make` raises.
    """
    if not isinstance(spec, dict):
        return spec, None
    from rollbook.sinks import make
    from rollbook.sinks._registry import fact
    from rollbook.sinks.filters import Every, Filter

    name = spec["name"]
    options = {key: value for key, value in spec.items() if key not in ("name", "options")}
    options.update(spec.get("options") or {})
    options = {key: value for key, value in options.items() if value is not None or key not in _COMMON}

    def whole() -> Sink:
        return make(name, **options)

    sink = whole()
    is_glance = not inline and fact(name, "is_glance", False)
    if is_glance and isinstance(sink, Every) and not isinstance(sink.to, Filter) and "seconds" in sink.options:
        bare = {key: value for key, value in options.items() if key not in ("every_seconds", "all", "filters")}
        return (lambda: make(name, **bare, all=True)), float(sink.options["seconds"])
    if fact(name, "is_live", False):
        return sink, 1.0
    return whole, None
