"""One step for a run: watch, sync, forward, sample, seal. When the last writer on this host has gone, finish the files.

`keeper.main` runs it until its work is done; `keeper.many_runs` steps many of them. Nothing depends on it: the next
keeper on this host, or `rollbook repair`, does what it left undone.
"""

from __future__ import annotations

import errno
import os
import time

from rollbook.keeper.ballast import Ballast
from rollbook.keeper.durable import Durable
from rollbook.keeper.ending import Ending, mark_crashed, report_the_dead
from rollbook.keeper.feeding import Feeding
from rollbook.keeper.followed_orders import FollowedOrders
from rollbook.keeper.host_rows import HostRows
from rollbook.keeper.own_files import Lock, Reports, keeper_folder, sweep
from rollbook.keeper.pace import Pace
from rollbook.keeper.rules import Rules
from rollbook.keeper.sealing import Sealing
from rollbook.keeper.shipping import Shipping
from rollbook.keeper.sweeping import sweep_finished
from rollbook.keeper.writers import Writers
from rollbook.schema.finished import former_writers
from rollbook.schema.run_files import heartbeat_path
from rollbook.schema.tables import FORWARDED
from rollbook.system.bill import Bill
from rollbook.system.files import is_folder, make_folders, pasted, read_json
from rollbook.system.guard import handled_by
from rollbook.system.liveness import host_name, shares_pids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rollbook.keeper.writers import KnownWriter

_STEP_SECONDS = 1.0
_BUSY_SECONDS = 0.05
_SYNC_SECONDS = 0.9
"""The least seconds between syncs while a writer lives: a sync cleans the pages that the next rows go to, and the first
write into a clean page costs the training ten microseconds."""
_QUICK_SECONDS = 0.02
_REST_SECONDS = 9.9
"""How long a keeper of many runs leaves an idle run alone; the host is sampled every ten seconds."""
_GRACE_SECONDS = 2.0
"""How long a keeper that finds no writer waits for one: it may have been started a moment too early."""
_FAILING_SECONDS = 0.25
_BALLAST_EVERY = 30.0
_MOST_SEAL_FAILURES = 3
_PATIENCE_HERE_SECONDS = 8.0
"""How long `run_to_end` waits for a child without processor time."""


class OneRun:
    """The work for one run on this host and in this pid namespace, one step at a time.

    Args:
      run_folder: the run's folder.
      sinks: sink objects (or entries as in plan.json) in addition to those of data/keeper/plan.json.
      clock: seconds, monotonic.
      seal_command: run instead of the sealing module; gets the run's folder and perhaps --final as arguments.
      sinks_in_turn: feed services in the keeper's thread as well, one after the other.
      seals_here: seal in this process, which then loads pyarrow.
    Attributes:
      phase: "running", "waiting" (its own writers are done; others elsewhere still write), "done", "taken" (another
        keeper is at work) or "gone" (the run's folder was moved or removed).
      feed_seconds: in a keeper of many runs, how long rows wait for sinks at most, so that each sink gets many at once.
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
        seals_here: bool = False,
    ) -> None:
        self.folder = os.path.abspath(os.fspath(run_folder))
        self.phase = "running"
        self.complete: set[str] = set()
        self.feed_seconds = 0.0
        self._own_folder = keeper_folder(self.folder)
        self._live_sinks, self._clock = list(sinks), clock
        self._lock = Lock(self.folder)
        self._locked = False
        self._writers = Writers(self.folder, clock)
        self._durable = Durable(self.folder, clock)
        self._ballast = Ballast(self.folder)
        self.reports = Reports(self.folder)
        self._report = Bill(deliver=self.reports.note).report
        self._sealing = Sealing(self.folder, self._ballast, clock, self._report, seal_command, is_here=seals_here)
        self._shipping = Shipping(self.folder, clock, self._report)
        self._orders = FollowedOrders(self.folder)
        self._feeding = Feeding(self.folder, clock, self._report, in_turn=sinks_in_turn)
        self._host = HostRows(self.folder, None, self._pids, clock)
        self._rules = Rules(self.folder, ())
        self._began = clock()
        self._ballast_at = self._synced_at = -1e9
        self._pace = Pace(clock)
        self._ending = Ending()
        self._closed: set[str] = set()  # writers on this host that have closed, also when their folder has gone
        self._idle = False  # nothing is left to do for them
        self._hurry_until: float | None = None
        self._dead = 0  # side writers on this host that ended without closing, as in run.json

    def hurry(self, seconds: float = 30.0) -> None:
        """SIGTERM: go on while writers live, for at most this long. At the second call: stop now."""
        self._hurry_until = -1e9 if self._hurry_until is not None else self._clock() + seconds

    def leave(self) -> None:
        """Stop without finishing the files; the next keeper continues from the disk."""
        try:
            self._host.close()
            self._rules.close()
            self._close_sinks(ended=False)
            self._sealing.stop()
            self._shipping.stop()
            self._ballast.give_up()
            self._writers.let_go()
            self._durable.let_go()
        finally:  # even if one of them raises, the run must not stay locked for the next keeper
            self._lock.release()
            self._locked = False

    def failed(self, err: BaseException) -> None:
        """A step raised: note it in data/keeper/log, once for each kind, and try the next one."""
        self._report("step", f"the keeper itself failed ({type(err).__name__}: {err}); it continues")

    def filenos(self) -> list[int]:
        """Descriptors that become readable when a watched writer or the awaited child ends."""
        return [*self._writers.filenos(), *([] if self._pace.awaited is None else [self._pace.awaited.fileno()])]

    def wait_until_alone(self, drain_seconds: float) -> None:
        """Everything has been written: step without waiting for a first writer.

        Args:
          drain_seconds: how long rows are offered to a failing sink, and the run to a remote that does not answer.
        """
        self._ending.hasten(drain_seconds)
        self._sealing.patience = self._shipping.patience = min(drain_seconds, _PATIENCE_HERE_SECONDS)
        self._began -= _GRACE_SECONDS

    def left_undone(self) -> str:
        """What was given up because its process hung, in words; "" for nothing."""
        given_up = [child for child in (self._sealing, self._shipping) if child.gave_up]
        return " and ".join(f"the {child.work} process did nothing for {child.patience:g} s" for child in given_up)

    def unjudged(self) -> str:
        """Which rows no health rule has seen, in words; "" for none."""
        return self._rules.unseen

    @property
    def is_idle(self) -> bool:
        """Whether the last step left nothing to do for the writers on this host that have closed."""
        return self._idle

    @property
    def others_live(self) -> bool:
        """Whether a writer on this host lived at the last step."""
        return not self._ending.has_begun

    def others_live_now(self) -> bool:
        """Whether a writer on this host lives."""
        self._writers.look()
        return bool(self._writers.living())

    def rests(self) -> bool:
        """Whether a step now would find nothing to do: no writer wrote, came or went since the last one.

        For a keeper of many runs; takes microseconds. False every ten seconds, for work that depends on time.
        """
        if not self._pace.rests() or not self._writers.same():
            return False
        if not self._durable.quiet(self._host.writer_id):
            return False
        return not is_folder(os.path.join(self.folder, "media", ".spool"))

    # -- one step

    def step(self) -> float | None:
        """Do what is due, once. Returns how long the next step can wait, in seconds; None when there is nothing
        left."""
        started = self._pace.begin()
        if not self._take_lock():
            return None
        if not is_folder(self._own_folder) or not self._lock.held():
            self.phase = "taken" if is_folder(self._own_folder) else "gone"
            self.leave()
            return None
        self._writers.look()
        here, elsewhere = self._writers.here(), self._writers.elsewhere()
        # First check which writers have closed, then look for rows: a closed writer adds none. Also before checking
        # which are alive: then a writer that closes now is not counted among several living ones, and everything is
        # sealed.
        closed = {writer.id for writer in here if writer.closed}
        living = self._writers.living()
        self._closed |= closed if living else {writer.id for writer in here if writer.closed}
        self._idle = False
        self._guard("sync", lambda: self._sync(here, bool(living)))
        self._guard("plan", self._read_orders)
        self._guard("dead", lambda: self._count_the_dead(here))
        if not here and not self._closed and started - self._began < _GRACE_SECONDS:
            return self._pace.next(0.05)
        if self._hurry_until is not None and started >= self._hurry_until:
            self.leave()
            return None
        if self._durable.held_back:
            self._seal_former()
        if not living and not self._writers.are_known:  # nothing ends while writers may exist that were not seen
            return self._pace.next(_FAILING_SECONDS)
        pause = self._keep(here) if living else self._finish_book(here, bool(elsewhere))
        if pause is None:
            return None if self._done() else self._pace.next(0.0)
        return self._pace.next(pause)

    def _take_lock(self) -> bool:
        if self._locked:
            return True
        if not is_folder(self.folder):  # removed before we came: do not make it again
            self.phase = "gone"
            return False
        with handled_by(lambda err: self._report("lock", f"the keeper's lock cannot be taken: {err}"), kinds=OSError):
            make_folders(self._own_folder, inside=self.folder)
            self._locked = self._lock.acquire()
        if not self._locked:
            self.phase = "taken" if is_folder(self.folder) else "gone"
            return False
        sweep(self._own_folder)
        self._write_phase("running")
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
            beats = read_json(heartbeat_path(self.folder))
            for writer in self._writers:
                if not writer.here:
                    self._writers.note(writer.id, beats.get(writer.id))

    def _seal_former(self) -> None:
        """After a reboot: first seal what was logged before it, while durable.json still has the marks for it."""
        if self._sealing.successes or self._sealing.failures >= _MOST_SEAL_FAILURES:
            self._durable.held_back = False
        else:
            self._sealing.begin(final=False)

    def _keep(self, here: list[KnownWriter]) -> float:
        """The work while a writer lives."""
        self._ending.take_back()
        self._rules.again()
        if self.phase != "running":
            self._write_phase("running")
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
            self._write_phase("running")
        self._idle = drained
        self._guard("rules", lambda: self._rules.step(self._durable.lanes))
        if self._shipping.failures or self._sealing.failures or self.reports.has_troubles:
            self._guard("troubles", self._write_troubles)
        self._guard("host", self._sample)
        self._sealing.step(self._durable.waiting(here, self._host.writer_id), now, self._rules)
        self._guard("ship", lambda: self._shipping.step(self._feeding.changed_at))
        if not drained and not self._feeding.failing():
            return 0.0
        if fresh:
            return _BUSY_SECONDS
        if self._sealing.due_since is not None:
            return _QUICK_SECONDS  # the rules are at work
        if self._sealing.busy:
            return self._pace.temporary(self._sealing, _BUSY_SECONDS)
        self._pace.watch(self._shipping)  # other runs may wait for its slot
        fed = due or not self._feeding.has_news()
        ships = self._shipping.busy or self._shipping.failures > 0
        if drained and fed and not self._feeding.needs_time() and not ships:
            self._pace.rest(min(now + _REST_SECONDS, self._shipping.due_at(self._feeding.changed_at)))
        return _STEP_SECONDS

    def _feed_is_due(self, now: float) -> bool:
        """Whether to offer rows to sinks; in a keeper of many runs not at every check."""
        return not self.reports.entry or self._feeding.failing() or self._feeding.is_due(now, self.feed_seconds)

    def _finish_book(self, here: list[KnownWriter], others: bool) -> float | None:
        """The work that remains when no writer on this host lives; None when it is done."""
        now = self._clock()
        if self._ending.begin(now):
            self._guard("host", self._host.close)
        main = self._main()
        if main is not None and main.dead:
            self._ending.vanished = True
            if not others:
                self._guard("status", lambda: mark_crashed(self.folder, main.id))
        self._guard("media", lambda: self._encode_media(None))
        is_hurried = self._ending.is_hurried
        have_looked = self._rules.finish(is_hurried=is_hurried)
        if not have_looked:  # their findings still have to be forwarded and sealed
            if not self._rules.are_late() or (self._ending.is_sealed and not is_hurried):
                return _QUICK_SECONDS
        elif self._ending.sealed_alerts != self._rules.alerts:
            self._ending.is_sealed = False
        drained = self._feed(frozenset(writer.id for writer in here))
        if not drained and self._ending.may_drain(now):
            return _FAILING_SECONDS if self._feeding.failing() else _QUICK_SECONDS
        if others and self._owns_sinks():
            # Their rows reach this folder, and only this keeper forwards them.
            self._sealing.step(self._durable.waiting(here))
            self._guard("ship", self._shipping.step)
            self.complete |= self._closed
            self._write_phase("waiting")
            self._idle = True
            return _STEP_SECONDS
        if not self._ending.is_sealed:
            pause = self._seal_the_rest(final=not others, have_looked=have_looked)
            if pause is not None:
                return pause
        if not self._is_shipped(now):
            return self._pace.temporary(self._shipping, _QUICK_SECONDS if self._shipping.busy else _FAILING_SECONDS)
        self.complete |= self._closed
        if not have_looked:  # do not wait for a slow rule
            if not is_hurried:
                self._write_phase("running")
                return _QUICK_SECONDS
            self._rules.give_up()
        return None

    def _seal_the_rest(self, *, final: bool, have_looked: bool) -> float | None:
        """Seal what is in the journal, before the rules' last look only what they have seen. None when that is done, or
        given up."""
        ended = self._sealing.poll()
        is_whole = not have_looked or self._ending.sealed_alerts == self._rules.alerts
        if ended and is_whole and self._sealing.was_final == final:
            self._ending.is_sealed = True
        elif not self._sealing.is_possible:
            self._guard("troubles", self._write_troubles)
            self._ending.is_sealed = True
        elif self._sealing.failures >= _MOST_SEAL_FAILURES or (self._ending.is_hurried and self._sealing.gave_up):
            self._guard("troubles", self._write_troubles)
            self._report("unsealed", "what could not be sealed stays in the journal, where readers find it")
            self._ending.is_sealed = True
        else:
            all_rows = have_looked or self._ending.is_hurried
            if self._sealing.begin_last(final=final, all_rows=all_rows):
                self._ending.sealed_alerts = self._rules.alerts if all_rows else -1
                if self._sealing.is_here:
                    return 0.0
            return self._pace.temporary(self._sealing, _QUICK_SECONDS)
        return None

    def _is_shipped(self, now: float) -> bool:
        """Whether everything is in the run's remote, or shipping is given up. A failing remote delays nothing."""
        shipping = self._shipping
        shipping.poll()
        if shipping.is_home():
            return True
        trouble = shipping.trouble()
        is_hopeful = self._ending.may_ship(now, is_definite=bool(trouble and trouble["is_definite"]))
        if trouble:
            self._guard("troubles", self._write_troubles)
            if self._closed - self.complete:
                self.complete |= self._closed
                self._write_phase("running")
            if not is_hopeful or (self._ending.is_hurried and shipping.gave_up):
                by_hand = f"rollbook push {pasted(self.folder)}"
                self._report("unshipped", f"not shipped: {trouble['words']}. Ship it with: {by_hand}")
                return True
        shipping.begin(final=True)
        return False

    def _done(self) -> bool:
        """Close everything; False if a writer came at that moment."""
        self._rules.close()
        if self._close_sinks(ended=self._ending.vanished):
            self._orders.forget()
        self._ballast.give_up()
        self._writers.look()
        if self._writers.living():
            return False
        self._write_phase("done")
        self._guard("sweep", lambda: sweep_finished(self.folder, self._lock))
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
        """Report for the last time what the sinks lack, and close them. False if there are none."""
        self._guard("troubles", self._write_troubles)
        if not self._feeding.is_open:
            return False
        self._feeding.close(ended=ended, seconds=1.0 if self._ending.is_hurried else None)
        self._guard("troubles", self._write_troubles)
        return True

    def _count_the_dead(self, here: list[KnownWriter]) -> None:
        dead = sum(not writer.main and writer.about.get("keeper") is not True and writer.dead for writer in here)
        if dead != self._dead and not self._orders.info.is_empty:
            report_the_dead(self.folder, host_name(), dead)
            self._dead = dead

    def _read_orders(self) -> None:
        """Follow plan.json and run.json: sinks, rules and host rows start again when either changes what is asked."""
        orders = self._orders
        if not orders.follow(self._owns_sinks()):
            return
        self._host.close()
        self._host = HostRows(self.folder, orders.host_seconds, self._pids, self._clock)
        self._feeding.use([*orders.sinks, *self._live_sinks] if not orders.info.is_empty else [], orders.x)
        self._rules.close()
        self._rules = Rules(
            self.folder, orders.rules, disregard=self._writers.disregard, clock=self._clock, report=self._report
        )

    def _main(self) -> KnownWriter | None:
        """The writer that opened the newest attempt, if its folder still exists."""
        return self._writers.get(self._orders.main_writer) or self._writers.main()

    def _owns_sinks(self) -> bool:
        """Whether this keeper forwards rows: of several hosts, the keeper on the main writer's host does."""
        main = self._main()
        if main is not None and main.id == (self._orders.main_writer or main.id):
            return main.here
        # When all is sealed, the writer.json files of closed writers move into one file.
        about = former_writers(self.folder).get(self._orders.main_writer)
        return shares_pids(about) if about is not None else main is not None and main.here

    def _feed(self, finished: frozenset[str]) -> bool:
        """Deliver rows; for `finished` writers all of them, without thinning. True when nothing is left."""
        feeding = self._feeding
        if not feeding.is_open:
            if feeding.is_asked and self._has_rows():
                self._guard("sinks", feeding.open)
            if not feeding.is_open:
                return True
        feeding.ask_all_for(finished)
        self._guard("troubles", self._write_troubles)
        # a bug of ours must not stop the remaining work
        with handled_by(lambda err: self._report("forward", f"forwarding failed: {type(err).__name__}: {err}")):
            return feeding.step(flush=bool(finished))
        return True

    def _write_troubles(self) -> None:
        """Write troubles.json: which sinks get nothing. The training process and `rollbook show` read it."""
        troubles = self._feeding.troubles()
        for what, child in (("remote", self._shipping), ("seal", self._sealing)):
            if trouble := child.trouble():
                troubles[what] = trouble
        self.reports.troubles(troubles)

    def _has_rows(self) -> bool:
        """Whether anything was logged yet; sealed rows count as well."""
        data = os.path.join(self.folder, "data")
        sealed = (is_folder(os.path.join(data, table)) for table in FORWARDED)
        return bool(self._durable.lanes or self._writers.elsewhere()) or any(sealed)

    def _encode_media(self, most: int | None) -> None:
        """Encode pictures and videos that the training left raw, before their rows go to sinks."""
        if is_folder(os.path.join(self.folder, "media", ".spool")):
            from rollbook.values.spool.encode import encode_spooled

            encode_spooled(self.folder, most=most)

    def _sample(self) -> None:
        self._host.prepare()
        if not self._host.due():
            return
        own = {
            "rollbook/keeper/lag_seconds": self._pace.take_late(),
            "rollbook/keeper/unsealed_bytes": float(self._durable.unsealed_bytes()),
            "rollbook/keeper/seal_failures": float(self._sealing.failures),
            **self._feeding.lag(time.time()),
            **self._rules.numbers(),
        }
        names = tuple(self._orders.info.clocks)
        self._host.write(self._orders.attempt, names, own)
        self._writers.disregard(self._host.writer_id)

    def _pids(self) -> list[int]:
        return sorted({writer.pid for writer in self._writers.living()})

    def _guard(self, cause: str, work: Callable[[], object]) -> None:
        """Call one part; if it fails, the others still work."""
        with handled_by(self._part_failed, cause):
            work()

    def _part_failed(self, cause: str, err: Exception) -> None:
        if isinstance(err, OSError) and err.errno == errno.ENOSPC:
            self._ballast.give_up()
        self._report(cause, f"{cause} failed ({type(err).__name__}: {err}); tried again at each step")

    def _write_phase(self, phase: str) -> None:
        """Write the progress to state.json: `finish()` in the training process reads it."""
        self.phase = phase
        self._guard("state", lambda: self.reports.state(phase, self.complete))
