"""`run.internals`: what framework adapters and capture modules use in addition to the public verbs."""

from __future__ import annotations

import os

from rollbook.schema.clocks import STANDARD, UNKNOWN
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rollbook.capture import Checkpoints
    from rollbook.journal import Channel, Writer
    from rollbook.run.open_run import OpenRun
    from rollbook.schema.manifest import RunJson


class Internals:
    """The internals of a run or a scope. Implements `protocols.RunInternals`, which describes each member."""

    __slots__ = ("_current", "_run", "scope")

    def __init__(self, run: OpenRun, channel: Channel) -> None:
        self._run, self.scope, self._current = run, channel.scope, channel.current

    @property
    def writer(self) -> Writer:
        """The process's writing end: `main`, `clocks`, `channel`, `time_offset`."""
        return self._run._writer

    @property
    def about(self) -> RunJson:
        """The content of run.json."""
        return self._run._about

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints saved by this process."""
        return self._run._checkpoints

    @property
    def era(self) -> int:
        """Number of the current stretch of history; it changes with a resume and with each rewind."""
        return self._run._era

    def reading(self, clock: str) -> int | None:
        """The current reading of a standard clock in this scope; None if it is not known. `clocks_now` has all."""
        reading = self._current[STANDARD.index(clock)]
        return None if reading == UNKNOWN else reading

    def episodes_before(self) -> tuple[int, int]:
        """(episodes begun, environment steps counted) in this scope, in the effective history."""
        return self._run._episodes_of(self.scope)

    def take_counter(self, counter: Any) -> None:
        """A recorder of episodes in this scope: checkpoints keep what its `count_all()` gives, the steps counted."""
        from weakref import WeakSet

        self._run._parts.counters.setdefault(self.scope, WeakSet()).add(counter)

    def latest(self) -> dict[str, tuple[Any, dict[str, int], float]]:
        """The last value of each key in the effective history, with clocks and time; also with rollbook-core alone."""
        return self._run._past.latest()

    def reached(self) -> dict[str, int]:
        """The highest reading of each clock in the effective history, in all tables; also with rollbook-core alone."""
        return self._run._past.reached()

    def saved_as(self, path: str | os.PathLike[str]) -> str | None:
        """The id of the newest checkpoint in the effective history that is this file or folder; None if it is none."""
        history = self._run._past.checkpoint_history()
        with tolerating(OSError):
            asked = os.stat(path)
            for identity, row in reversed(history.kept.items()):
                with tolerating(OSError):
                    if row.get("path") and os.path.samestat(os.stat(history.file_of(row)), asked):
                        return identity
        return None

    def begin_anew(self, why: str) -> None:
        """In a resumed run whose training begins at 0: abandon all rows of earlier attempts, and report it.

        Does nothing once this attempt has rows, or after a restore or a rewind: then it is another training in the run.

        Args:
          why: what was seen, as the first part of a sentence.
        """
        run = self._run
        if run._era > 1 or run._has_training_rows() or not run._start_again():
            return
        run._writer.bill.remark(
            "begun_anew",
            f"{why}: the rows of earlier attempts are abandoned (hidden, not deleted; attempts='all' has them). To go "
            "on with them instead, load a checkpoint, or take resume='never' for a new run",
        )

    @property
    def offsets(self) -> dict[str, int]:
        """What to add to the counters of a framework that restart at 0 after a resume."""
        return dict(self._run._attempt_entry().offsets or {})

    def continue_clocks(self, *names: str) -> dict[str, int]:
        """Store the current readings of the named clocks as offsets, for a framework whose counters restart at 0.

        The offsets are stored with the attempt: add `offsets` to the native counters, and log the sums as `step`.
        """
        now = self._run.clocks_now()
        offsets = {name: now[name] for name in names if name in now}
        self._run._attempt_entry().offsets = {**self.offsets, **offsets}
        self.write_about()
        return self.offsets

    def fill_in(
        self, *, seed: int | None = None, total: Mapping[str, Any] | None = None, algo: str | None = None
    ) -> None:
        """Set values that became known after `init`. Values that `init` was given stay.

        Args:
          seed: the seed of the run.
          total: planned length of the run, {"env_step": 100_000}; numbers below 1 are ignored.
          algo: the algorithm, where the configuration has it under no name that everybody uses.
        """
        about = self.about
        goals = {clock: int(end) for clock, end in (total or {}).items() if end >= 1}
        new = (seed is not None and about.seed is None, bool(algo) and not about.algo, bool(goals) and not about.total)
        if new[0]:
            about.seed = seed
        if new[1]:
            about.algo = algo
        if new[2]:
            about.total = goals
        if any(new):
            self.write_about()

    def lies_beside(self, folder: str) -> None:
        """The program's own files of this training, such as event files, lie in that folder: readers show it once."""
        own = os.path.abspath(self._run.folder)
        path = os.path.relpath(os.path.abspath(folder), own)
        known = self.about.native or []
        if path.startswith(os.pardir) and path not in known:
            self.about.native = [*known, path]
            self.write_about()

    def keep_boards(self, boards: Mapping[str, Sequence[Sequence[str]]]) -> None:
        """The program groups keys into charts: the page has them as boards.

        Args:
          boards: name -> charts, each the keys that it shows together.
        """
        known = self.about.boards or {}
        grown = {**known}
        for name, charts in boards.items():
            before = known.get(name)
            listed = [*before] if isinstance(before, list) else []
            grown[name] = [*listed, *(chart for chart in map(list, charts) if chart not in listed)]
        if grown != known:
            self.about.boards = grown
            self.write_about()

    def formatted_config(self, text: str) -> None:
        """Set the text of `formatted_total_config.py`, in a form from which the framework can start again."""
        self._run._keep_formatted(text)

    def write_about(self) -> None:
        """Write run.json again (only the main writer, and only if no other process took over); failures are counted."""
        self._run._write_about()
