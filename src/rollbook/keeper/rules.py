"""The keeper's step for health rules: shows new rows to the rules of a run, as columns, and writes what they find.

Rules run in a separate thread. A rule that raises, sleeps or never returns does not stop sealing or forwarding: it is
reported, counted, and not asked again. The thread sleeps until rows have come or some seconds have passed, and takes at
most a tenth of one core. If more is logged than it can read in that time, it reads the newest rows and counts the
others. Rules see only rows of the journal: during the run, no row behind the cursor in rules.json is sealed;
rows that were sealed anyway count as skipped.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time

from rollbook.keeper.cursors import as_cursor
from rollbook.keeper.own_files import keeper_folder
from rollbook.schema import manifest
from rollbook.schema.finished import keeper_file
from rollbook.schema.run_files import RunFile, journal_folder
from rollbook.system.files import is_folder, pasted, read_json, remove, write_json
from rollbook.system.guard import tolerating
from rollbook.system.texts import amount
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from rollbook.journal import ColumnsRead
    from rollbook.protocols import Rule
    from rollbook.schema.columns import Columns
    from rollbook.schema.records import Alert, RunInfo

_PAUSE_SECONDS = 5.0
"""How often rules are asked when no row has come."""

_MOST_OF_FRAME = 1024
"""How many rows to read of a larger chunk (`log_many`), evenly spaced."""

_SAVE_SECONDS = 10.0
_RECALL_TICK = 0.1
_AT_ONCE = threading.BoundedSemaphore(2)
"""This many processes of one keeper may recall at once; each takes some 100 MiB."""
_MOST_FAILURES = 3


def rules_path(run_folder: str) -> str:
    """data/keeper/rules.json: how far the rules have read, and their memory."""
    return os.path.join(run_folder, RunFile.KEEPER, RunFile.RULES)


def alerts_path(run_folder: str) -> str:
    """data/keeper/alerts.jsonl: the alerts of the rules, one a line, for the training process (`run.on_alert`)."""
    return os.path.join(run_folder, RunFile.KEEPER, RunFile.ALERTS)


class Rules:
    """The rules of one run. The keeper's thread calls `step`, `finish` and `close`; none of them raises.

    Args:
      run_folder: the run's folder.
      specs: what plan.json lists: {"name": …, option: value}.
      disregard: called with the id of the writer that writes the alerts.
      clock: seconds, monotonic.
      report: takes (cause, words) for the log.
      look_seconds: how long one look works on a backlog before it skips to the newest rows.
      last_look_seconds: the same for the last look, when the run is over.
      stretch_bytes: how many bytes of a lane's rows are read together.
    Attributes:
      rows, skipped: rows read, and rows skipped because there were too many.
      failures: looks at which a rule raised, and rules that took too long.
      alerts: alerts raised.
      seconds: time that the thread spent on looking.
      unseen: what the rules have not seen at the end of the run, in words; "" for nothing.
    """

    def __init__(
        self,
        run_folder: str,
        specs: Sequence[Mapping[str, object]],
        *,
        disregard: Callable[[str], object] = lambda writer: None,
        clock: Callable[[], float] = time.monotonic,
        report: Callable[[str, str], None] = lambda cause, words: None,
        look_seconds: float = 0.25,
        last_look_seconds: float = 3.0,
        stretch_bytes: int = 1024 * 1024,
    ) -> None:
        self.look_seconds, self.last_look_seconds = look_seconds, last_look_seconds
        self.stretch_bytes = stretch_bytes
        self._folder, self._specs = run_folder, specs
        self._disregard, self._clock, self._report = disregard, clock, report
        self.rows = self.skipped = self.failures = self.alerts = 0
        self.seconds = 0.0
        self._seen: object = None
        self._asked_at = self._saved_at = -1e9
        self._rest_until = -1e9
        self._looker: _Looker | None = None
        self._dead: set[str] = set()
        self._told: set[str] = set()
        self._finished = False
        self.unseen = ""
        self._ends_since: float | None = None
        self._is_hurried = False
        self._recalling_since: float | None = None

    def step(self, marks: Mapping[str, Mapping[str, int]]) -> None:
        """Wake the rules if rows have come or it is time; otherwise cheap.

        Args:
          marks: {writer: {lane: last sequence number}}; a change means new rows.
        """
        if not self._specs:
            return
        now = self._clock()
        looker = self._looker
        if looker is not None and looker.busy:
            self._judge(looker)
            return
        news = {writer: dict(lanes) for writer, lanes in marks.items()}
        if news == self._seen and now - self._asked_at < _PAUSE_SECONDS:
            return
        if now < self._rest_until or (looker is None and not any(news.values())):  # before the first row, load nothing
            return
        self._seen, self._asked_at = news, now
        self._ask(last=False)

    @property
    def are_asked(self) -> bool:
        """Whether there is a rule to ask."""
        return bool(self._specs)

    def has_looked_since(self, moment: float) -> bool:
        """Whether a look that began after `moment` is over and saved; sealing waits for it. Begins one if possible."""
        if not self._specs:
            return True
        looker = self._looker
        if looker is not None and looker.busy:
            self._judge(looker)
            return False
        if self._saved_at >= moment:
            return True
        if self._clock() >= self._rest_until:
            self._asked_at = self._saved_at = self._clock()
            self._ask(last=False, save=True)
        return False

    def finish(self, *, is_hurried: bool = False) -> bool:
        """The writers have gone: read what is left. True when that is done, or is impossible.

        Args:
          is_hurried: the training process waits. A rule of others that holds it up is left, and so is the reading of
            the history after a rewind, so that all other rules still see the last rows.
        """
        if not self._specs or self._finished:
            return True
        self._is_hurried = is_hurried
        self._ends_since = time.monotonic() if self._ends_since is None else self._ends_since
        looker = self._looker
        if looker is not None and looker.busy:
            if is_hurried and self._holds_up(looker):
                self._leave(looker, "was still at work when the run ended, and was left")
            else:
                self._judge(looker)
            return False
        if looker is not None and looker.has_looked_last:
            self._finished = True
            self.close()
            if self.skipped:
                self._note_unseen(f"the health rules have not seen {amount(self.skipped, 'row')} of this run")
            return True
        self._ask(last=True)
        return False

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for a look to end. False, at once, if there is none."""
        looker = self._looker
        if looker is None or not looker.busy:
            return False
        looker.rested.wait(seconds)
        return True

    def give_up(self) -> None:
        """The training process waits: abandon a rule that is still at work, and do not look again."""
        looker, self._looker = self._looker, None
        if looker is not None:
            self.failures += 1
            looker.abandon()
            self._note_unseen("the run ended before the health rules had seen its last rows")
        self._finished = True

    def _note_unseen(self, words: str) -> None:
        self.unseen = f"{words}. To ask them now: rollbook check {pasted(self._folder)}"
        self._report("unseen", self.unseen)

    def are_late(self) -> bool:
        """Whether the end of the run need not wait for the last look any longer."""
        looker, now = self._looker, time.monotonic()
        if self._recalling_since is not None:
            return now - self._recalling_since > TUNING.recall_end_seconds
        if looker is not None and looker.busy and self._holds_up(looker):
            return True
        return self._ends_since is not None and now - self._ends_since > TUNING.rules_end_seconds

    def _holds_up(self, looker: _Looker) -> bool:
        """Whether a rule of others (those of rollbook end) is at work and does not come back."""
        name, since = looker.at_work
        return ":" in name and time.monotonic() - since > TUNING.rules_seconds

    def may_recall(self, began: float) -> bool:
        """Whether to go on reading the history of a run: not for long once the training process waits."""
        hurried = TUNING.recall_end_seconds if self._is_hurried else math.inf
        return time.monotonic() - began < min(TUNING.recall_seconds, hurried)

    def again(self) -> None:
        """A writer has come after all."""
        self._finished, self._is_hurried, self._ends_since = False, False, None

    def numbers(self) -> dict[str, float]:
        """The rules' counts as metrics of the run; {} before they did anything."""
        if not self.rows and not self.failures:
            return {}
        return {
            "rollbook/rules/rows": float(self.rows),
            "rollbook/rules/rows_skipped": float(self.skipped),
            "rollbook/rules/seconds": self.seconds,
            "rollbook/rules/failures": float(self.failures),
            "rollbook/rules/alerts": float(self.alerts),
        }

    def close(self) -> None:
        """Close everything. Calling it twice is fine; a rule that hangs is abandoned."""
        looker, self._looker = self._looker, None
        if looker is not None:
            looker.stop()

    # -- below: the thread

    def _ask(self, last: bool, save: bool = False) -> None:
        if self._looker is None:
            looker = _Looker(self)
            try:
                looker.start()
                self._looker = looker
            except RuntimeError:  # Python 3.12 starts none while the interpreter exits, no Python at a limit of threads
                looker.ask(last, save)
                looker.look_once()
                looker.close()
                self._finished = self._finished or last
                return
        self._looker.ask(last, save)

    def _judge(self, looker: _Looker) -> None:
        """Abandon a rule that takes too long, and go on without it; without all rules if rows cannot be read."""
        name, since = looker.at_work
        if time.monotonic() - since > TUNING.look_seconds:
            limit = f"over {TUNING.look_seconds:g} s for one look"
            if name:
                self._leave(looker, f"took {limit}; it is asked no more")
            else:
                self._specs = ()
                self.tell_given_up("rules", f"no health rule is asked any more: reading rows took {limit}")
                self._note_unseen(f"reading rows took {limit}; no health rule is asked any more")
                self._leave(looker, "")

    def _leave(self, looker: _Looker, why: str) -> None:
        """Go on without the rule at work; the others look again."""
        name = looker.at_work[0]
        self.failures += 1
        if name:
            self._dead.add(name)
            self._report(f"rule:{name}", f"rule {name} {why}")
            self.tell_given_up(name, f"rule {name} {why}")
        looker.abandon()
        self._looker = None
        self._seen, self._saved_at = None, -1e9

    def tell_given_up(self, name: str, words: str) -> None:
        """Note among the run's alerts that a rule is asked no more: its silence would look like "all is well".

        Called in any thread; once for a rule.
        """
        if name in self._told:
            return
        self._told.add(name)
        recorder = _AlertWriter(self._folder, self._disregard)
        try:
            from rollbook.keeper.forward import run_info
            from rollbook.schema.alerts import Alerts
            from rollbook.schema.records import Alert

            recorder.begin(run_info(self._folder))
            message = f"{words}. To ask it now: rollbook check {pasted(self._folder)}"
            Alerts(recorder).report(Alert(name, "note", message, source="rollbook"))
        except Exception as err:
            self._report(f"told:{name}", f"{words}; that cannot be noted ({type(err).__name__}: {err})")
        finally:
            recorder.close()

    def recalls(self, since: float | None) -> None:
        """The thread reads the history since then; None: no longer. The end waits for it apart from the last look."""
        self._recalling_since = since
        if since is None and self._ends_since is not None:
            self._ends_since = time.monotonic()

    def worked(self, seconds: float) -> None:
        """The thread has worked this long, and may rest now."""
        self.seconds += seconds
        self._rest_until = self._clock() + TUNING.look_rest * seconds


class _Looker(threading.Thread):
    """Reads rows and asks the rules. Used once: `ask` wakes it, `stop` ends it."""

    def __init__(self, owner: Rules) -> None:
        super().__init__(name="rollbook-rules", daemon=True)
        self._owner, self._folder = owner, owner._folder
        self._wake, self.rested = threading.Event(), threading.Event()
        self._asked_last = self._asked_to_save = self._stopping = self.abandoned = False
        self.busy = self.has_looked_last = False
        self.at_work: tuple[str, float] = ("", 0.0)
        self._book: _RuleBook | None = None
        self._failures = 0  # looks in a row

    def ask(self, last: bool, save: bool) -> None:
        """Look once. `last`: also at everything that is left. `save`: also save the progress."""
        self.at_work = ("", time.monotonic())
        self._asked_last, self._asked_to_save, self.busy = last, save, True
        self.rested.clear()
        self._wake.set()

    def stop(self) -> None:
        """End the thread after its current look."""
        self._stopping = True
        self._wake.set()
        self.join(TUNING.look_seconds if not self.at_work[0] else 1.0)

    def abandon(self) -> None:
        """A rule hangs in it: ignore whatever it still does."""
        self.abandoned = self._stopping = True
        self._wake.set()
        self.rested.set()
        if self._book is not None and self.at_work[0]:  # the thread is not in our code: it is in the rule
            self._book.let_go()

    def run(self) -> None:
        """Wait, look, rest."""
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopping:
                break
            self.look_once()
            if self.abandoned:
                return
        self.close()

    def look_once(self) -> None:
        """Do what `ask` requested, in the calling thread."""
        began, last = time.thread_time(), self._asked_last
        try:
            if self._book is None:
                self._book = _RuleBook(self._owner, self)
            self._book.look(last, save=self._asked_to_save)
            self._failures = 0
        except Exception as err:
            self._failures += 1
            self._owner.failures += 1
            self._owner._report("rules", f"the rules cannot look ({type(err).__name__}: {err}); tried again")
        if not self.abandoned:
            self._owner.worked(time.thread_time() - began)
            self.has_looked_last = last and not 0 < self._failures < _MOST_FAILURES
            if self.has_looked_last and self._failures:
                self._owner._note_unseen("the health rules could not look at the last rows of the run")
            self.busy = False
        self.rested.set()

    def close(self) -> None:
        """Save the rules' memory after the last look."""
        if self._book is not None and not self.abandoned:
            self._book.close()

    def between(self, name: str) -> bool:
        """From now on a rule of this name is at work ("": none). False if this thread was abandoned."""
        self.at_work = (name, time.monotonic())
        return not self.abandoned


class _RuleBook:
    """The rules, the reader that feeds them, and the writer of their alerts. Only the thread uses it."""

    def __init__(self, owner: Rules, looker: _Looker) -> None:
        from rollbook.health import make
        from rollbook.journal import JournalReader
        from rollbook.keeper.forward import run_info
        from rollbook.schema.alerts import Alerts

        self._owner, self._looker, self._folder = owner, looker, owner._folder
        self._info: RunInfo = run_info(self._folder)
        self._rules: dict[str, Rule] = {}
        self._tables: dict[str, frozenset[str]] = {}
        self._failed: dict[str, int] = {}
        saved = keeper_file(self._folder, RunFile.RULES)
        memories = saved.get("rules")
        for spec in owner._specs:
            name = str(spec.get("name"))
            if name in owner._dead:
                continue
            try:
                rule = make(name, **{option: value for option, value in spec.items() if option != "name"})
                rule.open(self._info)
                self._rules[name], self._tables[name] = rule, frozenset(rule.tables)
            except Exception as err:
                owner.failures += 1
                words = f"rule {name} cannot be made ({type(err).__name__}: {err})"
                owner._report(f"rule:{name}", words)
                owner.tell_given_up(name, words)
                continue
            self._remind(name, rule, memories.get(name) if isinstance(memories, dict) else None)
        wanted: frozenset[str] = frozenset().union(*self._tables.values()) if self._tables else frozenset()
        self._reader = JournalReader(self._folder, tables=wanted, most_of_frame=_MOST_OF_FRAME)
        self._cursor = as_cursor(saved.get("cursor"))
        self._recorder = _AlertWriter(self._folder, owner._disregard)
        self._alerts = Alerts(self._recorder)
        self._alerts.set_state(saved.get("said"))
        self._keepers: dict[str, bool] = {}
        self._wall, self._began = time.time(), time.monotonic()
        self._saved_at = time.monotonic()
        self._moved = False
        self._has_seen = isinstance(memories, dict)
        self._recalled_for = 0
        sealed = os.path.join(self._folder, "data", "metrics")
        has_missed = not self._has_seen and self._info.attempt > 1 and is_folder(sealed)  # it began on another machine
        if has_missed and not self._open_again(self._info.attempt):
            self._leave_out_judges_of_the_start()

    def _leave_out_judges_of_the_start(self) -> None:
        """Nothing is known of the run's first rows: rules that compare with them would take this attempt's for them."""
        without = [name for name, rule in self._rules.items() if getattr(rule, "needs_start", False)]
        for name in without:
            del self._rules[name]
        words = f"what the run did before this attempt could not be read; not asked in it: {', '.join(without)}"
        self._owner._report("start", words)

    def look(self, last: bool, save: bool = False) -> None:
        """Show new rows to the rules; they are also called when there are none."""
        owner = self._owner
        until = time.thread_time() + (owner.last_look_seconds if last else owner.look_seconds)
        from rollbook.schema.columns import Columns

        heard = False
        for read in self._reader.columns(
            self._cursor,
            most_bytes=owner.stretch_bytes,
            is_late=lambda: time.thread_time() > until,
            leave_out=self._is_keepers,
        ):
            if read.skipped:
                self._tell_missed()
            heard = self._give(read) or heard
            if self._looker.abandoned:
                return
            self._moved = self._moved or read.cursor != self._cursor
            self._cursor = read.cursor
            self._owner.skipped += read.skipped
        if not heard and not last:
            self._ask(Columns(), self._now())
        if self._moved and (last or save or time.monotonic() - self._saved_at >= _SAVE_SECONDS):
            self._save()

    def _tell_missed(self) -> None:
        """Rows before the next ones are left out; see `protocols.Rule`."""
        for name, rule in list(self._rules.items()):
            told = getattr(rule, "rows_missed", None)
            try:
                if told is not None:
                    told()
            except Exception as err:
                self._fails(name, err)

    def close(self) -> None:
        """Save the memory and close all files."""
        if self._moved:
            self._save()
        self.let_go()

    def let_go(self) -> None:
        """Close all files."""
        self._reader.close()
        self._recorder.close()

    def _now(self) -> float:
        return self._wall + time.monotonic() - self._began

    def _give(self, read: ColumnsRead) -> bool:
        """Show the rows to the rules. Returns whether there were any."""
        from rollbook.schema.columns import Columns, columns_of

        if not read.in_order:
            return self._show(Columns(read.pieces))
        from rollbook.keeper.rewinds import effective_rows

        attempt = max((row.attempt for row in read.in_order if row.mark == "rewind"), default=0)
        history = effective_rows(self._folder, manifest.look(self._folder))
        rows = [
            row
            for row in read.in_order
            if row.mark != "rewind"
            and history.has(row.attempt, row.writer, row.lane, row.seq, round(row.time * 1e9), row.at)
        ]
        if self._has_seen and attempt != self._recalled_for and self._open_again(attempt):
            rows = [row for row in rows if row.attempt >= attempt]
        return self._show(columns_of(rows))

    def _show(self, columns: Columns) -> bool:
        if not len(columns):
            return False
        self._owner.rows += len(columns)
        self._has_seen, self._recalled_for = True, 0
        self._ask(columns, self._now())
        return True

    def _open_again(self, attempt: int) -> bool:
        """The run was rewound: give the rules the memory of the rows that this attempt continues from. False if it
        cannot be had: then they keep what they remember."""
        from rollbook.keeper.forward import run_info

        self._info = run_info(self._folder)
        recalled = self._recall(attempt)
        if recalled is None:
            return False
        memories = recalled.get("rules", {})
        for name, rule in list(self._rules.items()):
            self._open(name, rule)
            self._remind(name, rule, memories.get(name))
        self._alerts.set_state(recalled.get("said"))
        for columns, clocks in recalled.get("again", ()):
            self._recorder.begin(self._info)
            self._recorder.record("alerts", columns, **clocks)
        self._has_seen, self._recalled_for, self._moved = True, attempt, True
        return True

    def _recall(self, attempt: int) -> dict[str, Any] | None:
        """What `runs.recalling` finds, in a process of its own; None if it cannot."""
        from rollbook.system.optional import is_core_alone

        if is_core_alone():
            return None
        owner, began, has_turn = self._owner, time.monotonic(), False

        def may_go_on() -> bool:
            return self._looker.between("") and owner.may_recall(began)

        owner.recalls(began)
        try:
            while not has_turn and may_go_on():  # a hundred runs that are resumed together do not read together
                has_turn = _AT_ONCE.acquire(timeout=_RECALL_TICK)
            with tolerating(OSError):
                return self._recalled(attempt, may_go_on) if has_turn else None
            owner._report("recall", "the rules keep what they remember of abandoned rows: no process can be started")
            return None
        finally:
            owner.recalls(None)
            if has_turn:
                _AT_ONCE.release()

    def _recalled(self, attempt: int, may_go_on: Callable[[], bool]) -> dict[str, Any] | None:
        import subprocess

        from rollbook.keeper.child import command_of, start_child

        path = os.path.join(keeper_folder(self._folder), "recalled.json")
        remove(path)
        words = [self._folder, json.dumps(list(self._owner._specs)), str(attempt), str(TUNING.recall_rows), path]
        with open(os.path.join(keeper_folder(self._folder), "log"), "ab") as log:
            child = start_child(command_of("rollbook.runs.recalling"), words, log)
        while child.poll() is None:
            is_wanted = may_go_on()
            if not is_wanted:
                child.kill()
            with tolerating(subprocess.TimeoutExpired):
                child.wait(_RECALL_TICK if is_wanted else 1.0)
            if not is_wanted:
                return None
        found = read_json(path)
        remove(path)
        return found if child.returncode == 0 and found else None

    def _open(self, name: str, rule: Rule) -> None:
        try:
            rule.open(self._info)
        except Exception as err:
            self._fails(name, err)

    def _remind(self, name: str, rule: Rule, memory: object) -> None:
        """Give an open rule its memory."""
        if not isinstance(memory, dict) or not hasattr(rule, "set_state"):
            return
        try:
            rule.set_state(memory)
        except Exception as err:  # for example, it is of another version
            self._owner._report(
                f"memory:{name}", f"rule {name} starts again without its memory ({type(err).__name__}: {err})"
            )
            self._open(name, rule)

    def _ask(self, columns: Columns, now: float) -> None:
        for name, rule in list(self._rules.items()):
            own = columns.of(self._tables[name])
            if len(columns) and not len(own):
                continue
            if not self._looker.between(name):
                return
            try:
                alerts = list(rule.look(own, now))
            except Exception as err:
                self._fails(name, err)
                continue
            finally:
                alive = self._looker.between("")
            if not alive:
                return
            self._failed.pop(name, None)
            for alert in alerts:
                self._deliver(alert)

    def _fails(self, name: str, err: Exception) -> None:
        self._owner.failures += 1
        self._failed[name] = self._failed.get(name, 0) + 1
        given_up = self._failed[name] >= _MOST_FAILURES
        if given_up:
            del self._rules[name]
            self._owner._dead.add(name)
        words = f"rule {name} failed ({type(err).__name__}: {err}); it is asked {'no more' if given_up else 'again'}"
        self._owner._report(f"rule:{name}:{given_up}", words)
        if given_up:
            self._owner.tell_given_up(name, words)

    def _deliver(self, alert: Alert) -> None:
        self._owner.alerts += 1
        self._recorder.begin(self._info)
        if self._alerts.report(alert):
            self._pass_on(alert)
            self._save()

    def _pass_on(self, alert: Alert) -> None:
        line = {
            "time": time.time(),
            "rule": alert.rule,
            "level": alert.level,
            "key": alert.key,
            "message": alert.message,
            "clocks": dict(alert.clocks),
        }
        try:
            with open(alerts_path(self._folder), "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except (OSError, TypeError, ValueError) as err:
            self._owner._report(RunFile.ALERTS, f"an alert cannot be passed on to the training: {err}")

    def _is_keepers(self, writer: str) -> bool:
        known = self._keepers.get(writer)
        if known is None:
            about = read_json(os.path.join(journal_folder(self._folder), writer, RunFile.WRITER))
            known = about.get("keeper") is True
            if about:
                self._keepers[writer] = known
        return known

    def _save(self) -> None:
        self._saved_at, self._moved = time.monotonic(), False
        memories = {}
        for name, rule in self._rules.items():
            if hasattr(rule, "state"):
                try:
                    memories[name] = rule.state()
                except Exception as err:
                    self._fails(name, err)
                    return
        cursor = {writer: {str(lane): seq for lane, seq in lanes.items()} for writer, lanes in self._cursor.items()}
        try:
            write_json(rules_path(self._folder), {"cursor": cursor, "said": self._alerts.state(), "rules": memories})
        except OSError as err:
            self._owner._report(RunFile.RULES, f"what the rules remember cannot be saved: {err}")


class _AlertWriter:
    """A journal writer of the keeper for the table `alerts`. It has a folder from the first alert on."""

    def __init__(self, run_folder: str, disregard: Callable[[str], object]) -> None:
        self._folder, self._disregard = run_folder, disregard
        self._writer: Any = None
        self._attempt = 0

    def begin(self, info: RunInfo) -> None:
        """Be ready to write in the run's newest attempt."""
        from rollbook.journal import Writer
        from rollbook.schema.clocks import STANDARD

        attempt = manifest.newest(manifest.look(self._folder)).n or info.attempt
        if self._writer is not None and attempt == self._attempt:
            return
        self.close()
        writer = Writer(self._folder, attempt=attempt, clocks=tuple(info.clocks) or STANDARD, main=False)
        writer.open()
        path = os.path.join(writer.folder, RunFile.WRITER)
        write_json(path, {**read_json(path), "keeper": True})  # others do not wait for it, and it keeps no run alive
        self._disregard(writer.id)
        self._writer, self._attempt = writer, attempt

    def record(self, table: str, columns: Mapping[str, object], **clocks: object) -> int:
        """One row of a table."""
        from rollbook.schema.clocks import UNKNOWN

        writer = self._writer
        readings = [clocks.get(clock, UNKNOWN) for clock in writer.clocks]
        payload = {"table": table, "scope": "", "at": "", "clocks": readings, "n": 1}
        return int(writer.frame({**payload, "columns": {name: [cell] for name, cell in columns.items()}}))

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        """Ignored: the run learns of alerts from its sinks and its book."""

    def close(self) -> None:
        """Close the writer."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
