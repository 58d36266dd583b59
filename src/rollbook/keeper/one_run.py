"""One step for a run: watch, sync, forward, sample, seal; and when the last writer here has gone, finish the book.

`keeper.main` runs it until its work is done, `keeper.many_runs` steps many side by side. Nothing depends on it: what
it left undone, the next keeper of this place, or `rollbook repair`, does.
"""

from __future__ import annotations

import os
import time

from rollbook.bill import Bill
from rollbook.files import read_json, write_json
from rollbook.foreign import is_foreign, tolerating
from rollbook.journal.liveness import host_name, identity, same_place
from rollbook.keeper.ballast import Ballast
from rollbook.keeper.dead_writers import mark_crashed, tell_of_the_dead
from rollbook.keeper.durable import Durable
from rollbook.keeper.feeding import Feeding
from rollbook.keeper.host_rows import HostRows
from rollbook.keeper.own_files import Lock, keeper_folder, state_path, sweep, troubles_path
from rollbook.keeper.plan import Plan
from rollbook.keeper.rules import Rules
from rollbook.keeper.sealing import Sealing
from rollbook.keeper.shipping import Shipping
from rollbook.keeper.writers import Writers
from rollbook.tables import FORWARDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rollbook.keeper.child import Child
    from rollbook.keeper.writers import KnownWriter

__all__ = ["OneRun"]

_STEP_SECONDS = 1.0
_BUSY_SECONDS = 0.05
_SYNC_SECONDS = 0.9
"""Never sync more often while a writer lives: a sync makes clean the very pages that the next rows go to, and the first
store into a clean page costs the training ten microseconds."""
_QUICK_SECONDS = 0.02
WOKEN_SECONDS = 0.25
"""How often to look around while a child is at work whose end wakes us: a look costs 0.3 ms a writer."""
_REST_SECONDS = 9.9
"""How long a keeper of many leaves a run alone in which nothing happens; the host is sampled every ten seconds."""
_GRACE_SECONDS = 2.0
"""How long a keeper that finds no writer waits for one: it may have been started a moment too early."""
_DRAIN_SECONDS = 600.0
"""How long a finished run's keeper goes on offering rows to a sink that fails. Its cursor stays for a later one."""
_FAILING_SECONDS = 0.25
_SHIP_REFUSED_SECONDS = 600.0
_SHIP_AWAY_SECONDS = 6 * 3600.0
"""How long a finished run's keeper goes on shipping to a place that refuses, and to one that gives no answer."""
_BALLAST_EVERY = 30.0
_MOST_SEAL_FAILURES = 3


class OneRun:
    """What is done for one run on this host and in this pid namespace, a step at a time.

    Args:
      run_folder: the run's folder.
      sinks: sink objects (or entries as in plan.json) beside those of data/keeper/plan.json.
      clock: seconds, monotonic.
      seal_command: run instead of the sealing module, with the run's folder and perhaps --final behind it.
      sinks_in_turn: feed services in the keeper's own thread as well, one after the other.
    Attributes:
      phase: "running", "waiting" (its own writers are done; others elsewhere still write), "done", "taken" (another
        keeper is at work) or "gone" (the run's folder was moved or removed).
      feed_seconds: of many runs, how long rows wait for sinks at most, so that each gets many at once.
      complete: ids of writers whose rows have all reached sinks, and Parquet if the phase is "done".
    """

    def __init__(
        self,
        run_folder: str | os.PathLike[str],
        sinks: Sequence[object] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
        seal_command: Sequence[str] | None = None,
        sinks_in_turn: bool = False,
    ) -> None:
        self.folder = os.path.abspath(os.fspath(run_folder))
        self.phase = "running"
        self.complete: set[str] = set()
        self.bell = self.door = ""
        self.feed_seconds = 0.0
        self._own_folder = keeper_folder(self.folder)
        self._live_sinks, self._clock = list(sinks), clock
        self._lock = Lock(self.folder)
        self._locked = False
        self._writers = Writers(self.folder, clock)
        self._durable = Durable(self.folder, clock)
        self._ballast = Ballast(self.folder)
        self._say = Bill(tell=self._note).say
        self._sealing = Sealing(self.folder, self._ballast, clock, self._say, seal_command)
        self._shipping = Shipping(self.folder, clock, self._say)
        self._ship_since: float | None = None
        self._plan = Plan(self.folder)
        self._feeding = Feeding(self.folder, clock, self._say, in_turn=sinks_in_turn)
        self._host = HostRows(self.folder, None, self._pids, clock)
        self._rules = Rules(self.folder, ())
        self._began = clock()
        self._ballast_at = self._synced_at = -1e9
        self._due = self._began
        self._late = 0.0
        self._ending_since: float | None = None
        self._final_sealed = False
        self._closed: set[str] = set()  # writers of this place that have said goodbye, also when their folder has gone
        self._idle = False  # nothing is left to do for those
        self._hurry_until: float | None = None
        self._vanished = False
        self._drain_seconds = _DRAIN_SECONDS
        self._dead = 0  # side writers of this place that ended without a goodbye, as run.json says
        self._state: dict[str, object] = {}
        self._troubles = read_json(troubles_path(self.folder))  # those of an earlier life are over
        self._rests = False  # the last step left nothing to be done before a writer writes or some seconds pass
        self._full_at = -1e9  # until when
        self._hears_children = True
        self._awaited: Child | None = None  # the child whose end wakes us

    def hurry(self, seconds: float = 30.0) -> None:
        """The system wants us gone (SIGTERM): go on while writers live, for at most so long. The second time: now."""
        self._hurry_until = -1e9 if self._hurry_until is not None else self._clock() + seconds

    def leave(self) -> None:
        """Stop without finishing the book; the next keeper goes on from what is on the disk."""
        self._host.close()
        self._rules.close()
        self._close_sinks(ended=False)
        self._sealing.stop()
        self._shipping.stop()
        self._ballast.give_up()
        self._writers.let_go()
        self._durable.let_go()
        self._lock.release()
        self._locked = False

    def failed(self, err: Exception) -> None:
        """A step raised: it is noted in data/keeper/log, once for each kind, and the next one is tried."""
        self._say("step", f"the keeper itself failed ({type(err).__name__}: {err}); it goes on")

    def filenos(self) -> list[int]:
        """Descriptors that become readable when a watched writer ends, or the child that is waited for."""
        return [*self._writers.filenos(), *([] if self._awaited is None else [self._awaited.fileno()])]

    def _pause_beside(self, child: Child, otherwise: float) -> float:
        """How long the next step can wait while `child` is at work; `otherwise` where its end does not wake us."""
        if child.fileno() < 0 or not self._hears_children:
            return otherwise
        self._awaited = child
        return WOKEN_SECONDS

    def wait_for_nobody(self, drain_seconds: float) -> None:
        """What is to be done has been written: step without waiting for a first writer.

        Args:
          drain_seconds: how long rows are offered to a sink that fails, and the run to a place that gives no answer.
        """
        self._drain_seconds = drain_seconds
        self._began -= _GRACE_SECONDS

    @property
    def is_idle(self) -> bool:
        """Whether the last step left nothing to do for the writers of this place that have closed."""
        return self._idle

    @property
    def others_live(self) -> bool:
        """Whether a writer of this place lived at the last step."""
        return self._ending_since is None

    def others_live_now(self) -> bool:
        """Whether a writer of this place lives."""
        self._writers.look()
        return bool(self._writers.living())

    def rests(self) -> bool:
        """Whether a step now would find nothing to do: no writer wrote, came or went since the last one.

        For who steps many keepers; costs microseconds. False every ten seconds, for what goes by time.
        """
        if not self._rests or self._clock() >= self._full_at or not self._writers.same():
            return False
        if not self._durable.quiet(self._host.writer_id):
            return False
        return not os.path.isdir(os.path.join(self.folder, "media", ".spool"))

    # -- one step

    def step(self) -> float | None:
        """Do once what is due. Returns how long the next step can wait, in seconds; None when there is nothing left."""
        started = self._clock()
        self._rests, self._awaited = False, None
        self._late = max(self._late, started - self._due)
        if not self._take_lock():
            return None
        if not os.path.isdir(self._own_folder) or not self._lock.held():
            self.phase = "taken" if os.path.isdir(self._own_folder) else "gone"
            self.leave()
            return None
        self._writers.look()
        here, elsewhere = self._writers.here(), self._writers.elsewhere()
        # Who has said goodbye is asked before rows are looked for: then none of theirs can come afterwards. And before
        # who lives: if that is the one who says it now, it is not beside others that live, and all is to be sealed.
        closed = {writer.id for writer in here if writer.closed}
        living = self._writers.living()
        self._closed |= closed if living else {writer.id for writer in here if writer.closed}
        self._idle = False
        self._guard("sync", lambda: self._sync(here, bool(living)))
        self._guard("plan", self._read_plan)
        self._guard("dead", lambda: self._count_the_dead(here))
        if not here and not self._closed and started - self._began < _GRACE_SECONDS:
            return self._next(0.05)
        if self._hurry_until is not None and started >= self._hurry_until:
            self.leave()
            return None
        if self._durable.held_back:
            self._seal_former()
        pause = self._keep(here) if living else self._finish_book(here, bool(elsewhere))
        if pause is None:
            return None if self._done() else self._next(0.0)
        return self._next(pause)

    def _next(self, pause: float) -> float:
        self._due = self._clock() + pause
        return pause

    def _take_lock(self) -> bool:
        if self._locked:
            return True
        if not os.path.isdir(self.folder):  # removed before we came: do not bring it back
            self.phase = "gone"
            return False
        try:
            os.makedirs(self._own_folder, exist_ok=True)
            self._locked = self._lock.acquire()
        except OSError as err:
            if is_foreign(err):
                raise
            self._say("lock", f"the keeper's lock cannot be taken: {err}")
        if not self._locked:
            self.phase = "taken"
            return False
        sweep(self._own_folder)
        self._tell("running")
        return True

    def _sync(self, here: list[KnownWriter], alive: bool) -> None:
        alone = all(writer.here for writer in self._writers)
        now = self._clock()
        sync = not alive or now - self._synced_at >= _SYNC_SECONDS
        self._synced_at = now if sync else self._synced_at
        for id in self._durable.step(here, alive=alive, alone=alone, sync=sync, own=self._host.writer_id):
            self._writers.sign(id)
            self._feeding.changed_at = now
        if not alone:
            beats = read_json(os.path.join(self._own_folder, "heartbeat"))
            for writer in self._writers:
                if not writer.here:
                    self._writers.hear(writer.id, beats.get(writer.id))

    def _seal_former(self) -> None:
        """After a reboot: seal first what was logged before it, while durable.json still says how far that counts."""
        if self._sealing.successes or self._sealing.failures >= _MOST_SEAL_FAILURES:
            self._durable.held_back = False
        else:
            self._sealing.begin(final=False)

    def _keep(self, here: list[KnownWriter]) -> float:
        """What is done while a writer lives."""
        self._ending_since, self._final_sealed, self._vanished = None, False, False
        self._rules.again()
        self._ship_since = None
        if self.phase != "running":
            self._tell("running")
        now = self._clock()
        if now - self._ballast_at >= _BALLAST_EVERY:
            self._ballast_at = now
            self._ballast.hold()
        fresh = frozenset(self._closed - self.complete)
        self._guard("media", lambda: self._encode_media(8))
        due = bool(fresh) or self._feed_is_due(now)
        drained = self._feed(fresh) if due else True
        if due:
            self._feeding.was_fed(now, drained)
        if fresh and drained:
            self.complete |= fresh
            self._tell("running")
        self._idle = drained
        self._guard("rules", lambda: self._rules.step(self._durable.lanes))
        if self._shipping.failures or "remote" in self._troubles:
            self._guard("troubles", self._tell_troubles)
        self._guard("host", self._sample)
        self._sealing.step(self._durable.waiting(here, self._host.writer_id))
        self._guard("ship", lambda: self._shipping.step(self._feeding.changed_at))
        if not drained and not self._feeding.failing():
            return 0.0
        if fresh:
            return _BUSY_SECONDS
        if self._sealing.busy:
            return self._pause_beside(self._sealing, _BUSY_SECONDS)
        if self._shipping.fileno() >= 0 and self._hears_children:
            self._awaited = self._shipping  # other runs may wait for its room
        fed = due or not self._feeding.has_news()
        ships = self._shipping.busy or self._shipping.failures > 0
        self._rests = drained and fed and not self._feeding.needs_time() and not ships
        self._full_at = min(now + _REST_SECONDS, self._shipping.due_at(self._feeding.changed_at))
        return _STEP_SECONDS

    def _feed_is_due(self, now: float) -> bool:
        """Whether to offer sinks what there is; where many runs are kept not at each look."""
        return not self.door or self._feeding.failing() or self._feeding.is_due(now, self.feed_seconds)

    def _finish_book(self, here: list[KnownWriter], others: bool) -> float | None:
        """What is left to do when no writer of this place lives; None when it is done."""
        now = self._clock()
        if self._ending_since is None:
            self._ending_since = now
            self._guard("host", self._host.close)
        main = self._main()
        if main is not None and main.dead:
            self._vanished = True
            if not others:
                self._guard("status", lambda: mark_crashed(self.folder, main.id))
        self._guard("media", lambda: self._encode_media(None))
        if not self._rules.finish():  # what they find is still to be forwarded and sealed
            return _QUICK_SECONDS
        drained = self._feed(frozenset(writer.id for writer in here))
        if not drained and now - self._ending_since < self._drain_seconds:
            return _FAILING_SECONDS if self._feeding.failing() else _QUICK_SECONDS
        if others and self._owns_sinks():
            # Their rows reach this folder, and only this keeper forwards them.
            self._sealing.step(self._durable.waiting(here))
            self._guard("ship", self._shipping.step)
            self.complete |= self._closed
            self._tell("waiting")
            self._idle = True
            return _STEP_SECONDS
        if not self._final_sealed:
            ended = self._sealing.poll()
            if ended and self._sealing.was_final == (not others):
                self._final_sealed = True
            elif self._sealing.failures >= _MOST_SEAL_FAILURES:
                self._say("unsealed", "what could not be sealed stays in the journal, where readers find it")
                self._final_sealed = True
            else:
                self._sealing.begin(final=not others)
                return self._pause_beside(self._sealing, _QUICK_SECONDS)
        if not self._is_shipped(now):
            return self._pause_beside(self._shipping, _QUICK_SECONDS if self._shipping.busy else _FAILING_SECONDS)
        self.complete |= self._closed
        return None

    def _is_shipped(self, now: float) -> bool:
        """Whether everything is in the run's place, or no more is to be hoped for. Nobody waits for a place that
        fails."""
        shipping = self._shipping
        shipping.poll()
        if shipping.is_home():
            return True
        self._ship_since = now if self._ship_since is None else self._ship_since
        if trouble := shipping.trouble():
            self._guard("troubles", self._tell_troubles)
            if self._closed - self.complete:
                self.complete |= self._closed
                self._tell("running")
            patience = _SHIP_REFUSED_SECONDS if trouble["is_definite"] else _SHIP_AWAY_SECONDS
            if now - self._ship_since >= (patience if self._drain_seconds == _DRAIN_SECONDS else self._drain_seconds):
                self._say("unshipped", f"not shipped: {trouble['words']}. Ship it with: rollbook push {self.folder}")
                return True
        shipping.begin(final=True)
        return False

    def _done(self) -> bool:
        """Put everything away; False if a writer came in that very moment."""
        self._rules.close()
        if self._close_sinks(ended=self._vanished):
            self._plan.forget()
        self._ballast.give_up()
        self._writers.look()
        if self._writers.living():
            return False
        self._tell("done")
        self._lock.release()
        self._locked = False
        # A writer that came while we still held the lock has seen it taken, and started no keeper.
        self._writers.look()
        if self._writers.living():
            self.phase = "running"
            return False
        self._writers.let_go()
        self._durable.let_go()
        return True

    # -- its parts

    def _close_sinks(self, *, ended: bool) -> bool:
        """Say for the last time what they lack, and close them. False if there are none."""
        self._guard("troubles", self._tell_troubles)
        if not self._feeding.is_open:
            return False
        self._feeding.close(ended=ended)
        self._guard("troubles", self._tell_troubles)
        return True

    def _count_the_dead(self, here: list[KnownWriter]) -> None:
        dead = sum(not writer.main and writer.about.get("keeper") is not True and writer.dead for writer in here)
        if dead != self._dead and self._plan.info:
            tell_of_the_dead(self.folder, host_name(), dead)
            self._dead = dead

    def _read_plan(self) -> None:
        """Follow plan.json and run.json: sinks, rules and the host's rows begin anew when either asks for others."""
        plan = self._plan
        if not plan.follow(self._owns_sinks()):
            return
        self._host.close()
        self._host = HostRows(self.folder, plan.host_seconds, self._pids, self._clock)
        self._feeding.use([*plan.sinks, *self._live_sinks] if plan.info else [], plan.x)
        self._rules.close()
        self._rules = Rules(
            self.folder, plan.rules, disregard=self._writers.disregard, clock=self._clock, say=self._say
        )

    def _main(self) -> KnownWriter | None:
        """The writer that opened the newest attempt, as far as its folder is still there."""
        return self._writers.get(self._plan.main_writer) or self._writers.main()

    def _owns_sinks(self) -> bool:
        """Of several hosts' keepers the one beside the main writer forwards."""
        main = self._main()
        if main is not None and main.id == (self._plan.main_writer or main.id):
            return main.here
        # When all is sealed, the pages of writers that have closed move into one file.
        about = read_json(os.path.join(self.folder, "data", "writers.json")).get(self._plan.main_writer)
        return same_place(about) if isinstance(about, dict) else main is not None and main.here

    def _feed(self, finished: frozenset[str]) -> bool:
        """Deliver rows; with `finished` writers, all of theirs, whatever thinning says. True when nothing is left."""
        feeding = self._feeding
        if not feeding.is_open:
            if feeding.is_asked and self._has_rows():
                self._guard("sinks", feeding.open)
            if not feeding.is_open:
                return True
        feeding.ask_all_for(finished)
        self._guard("troubles", self._tell_troubles)
        try:
            return feeding.step(flush=bool(finished))
        except Exception as err:  # a fault of ours must not keep the rest from being done
            if is_foreign(err):
                raise
            self._say("forward", f"forwarding failed: {type(err).__name__}: {err}")
            return True

    def _tell_troubles(self) -> None:
        """Say in troubles.json which sinks get nothing: the training process and `rollbook show` look there."""
        troubles = self._feeding.troubles()
        if trouble := self._shipping.trouble():
            troubles["remote"] = trouble
        if troubles != self._troubles:
            self._troubles = troubles
            write_json(troubles_path(self.folder), troubles)

    def _has_rows(self) -> bool:
        """Whether anything was logged yet; if it is only that something was sealed."""
        data = os.path.join(self.folder, "data")
        sealed = (os.path.isdir(os.path.join(data, table)) for table in FORWARDED)
        return bool(self._durable.lanes or self._writers.elsewhere()) or any(sealed)

    def _encode_media(self, most: int | None) -> None:
        """Make files of the pictures and films that training left raw, before their rows go to sinks."""
        if os.path.isdir(os.path.join(self.folder, "media", ".spool")):
            from rollbook.spool.encode import encode_spooled

            encode_spooled(self.folder, most=most)

    def _sample(self) -> None:
        self._host.prepare()
        if not self._host.due():
            return
        own = {
            "rollbook/keeper/lag_seconds": self._late,
            "rollbook/keeper/unsealed_bytes": float(self._durable.unsealed_bytes()),
            "rollbook/keeper/seal_failures": float(self._sealing.failures),
            **self._feeding.lag(time.time()),
            **self._rules.numbers(),
        }
        self._late = 0.0
        names = tuple(self._plan.info.get("clocks") or ())
        self._host.write(self._plan.attempt, names, own)
        self._writers.disregard(self._host.writer_id)

    def _pids(self) -> list[int]:
        return sorted({writer.pid for writer in self._writers.living()})

    def _guard(self, cause: str, work: Callable[[], object]) -> None:
        """One part that fails must not keep the others from their work."""
        try:
            work()
        except Exception as err:
            if is_foreign(err):
                raise
            if isinstance(err, OSError) and err.errno == 28:
                self._ballast.give_up()
            self._say(cause, f"{cause} failed ({type(err).__name__}: {err}); tried again at each step")

    def _tell(self, phase: str) -> None:
        """Say in state.json how far we are: `finish()` of the training process looks there."""
        self.phase = phase
        state = {**identity(), "phase": phase, "complete": sorted(self.complete), "bell": self.bell}
        if self.door:
            state["door"] = self.door
        if state != self._state:
            self._state = state
            self._guard("state", lambda: write_json(state_path(self.folder), state))

    def _note(self, _cause: str, words: str) -> None:
        """A line in data/keeper/log."""
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {words}\n"
        path = os.path.join(self._own_folder, "log")
        with tolerating(OSError), open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(line)
