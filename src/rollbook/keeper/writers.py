"""The writers of a run as its keeper sees them: which are on this host, which still live, which have closed."""

from __future__ import annotations

import os
import time

from rollbook.schema.run_files import RunFile, journal_folder
from rollbook.system.files import exists, read_json
from rollbook.system.guard import tolerating
from rollbook.system.liveness import Watch, shares_pids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GRAIN_NS = 100_000_000
"""A folder that changed this recently may change again without a new modification time."""

_SILENT_SECONDS = 60.0
"""A writer whose process cannot be checked counts as gone after this long without a sign, and as back at its next
sign."""


class KnownWriter:
    """One folder of data/journal.

    Attributes:
      id, folder: its name, and the path of its folder.
      about: its writer.json.
      here: it belongs to this boot and pid namespace, so its process can be watched and its files changed.
      main: it opened the run; its attempt is `attempt`.
    """

    __slots__ = (
        "_closed",
        "_closed_file",
        "_watch",
        "about",
        "attempt",
        "beat",
        "folder",
        "here",
        "id",
        "last_sign",
        "main",
    )

    def __init__(self, id: str, folder: str, about: dict[str, object], now: float) -> None:
        self.id, self.folder, self.about = id, folder, about
        self._closed_file = os.path.join(folder, RunFile.CLOSED)
        self.here = shares_pids(about)
        self.main = about.get("main") is True
        attempt = about.get("attempt")
        self.attempt = attempt if type(attempt) is int else 1
        self.last_sign = now
        self.beat: object = None
        self._closed = False
        self._watch: Watch | None = None

    @property
    def closed(self) -> bool:
        """It wrote closed.json: nothing will follow."""
        if not self._closed:
            self._closed = exists(self._closed_file)
            if self._closed:
                self.let_go()
        return self._closed

    @property
    def dead(self) -> bool:
        """It is known to have ended without closing."""
        if not self.here or self.closed:
            return False
        if self._watch is None:
            self._watch = Watch(self.about)
        return self._watch.dead() and not self.closed

    @property
    def judged(self) -> bool:
        """Whether its end would be noticed; otherwise only its rows show that it lives."""
        return self.here and not (self._watch is not None and self._watch.how == "unknown")

    @property
    def pid(self) -> int:
        """Its process id; only valid if `here` holds."""
        pid = self.about.get("pid")
        return pid if type(pid) is int else 0

    def fileno(self) -> int:
        """A descriptor that becomes readable when it ends; -1 if there is none."""
        return -1 if self._watch is None or self._closed else self._watch.fileno()

    def let_go(self) -> None:
        """Close the watch."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None


class Writers:
    """All writers of one run; `look` finds new ones.

    Args:
      run_folder: the run's folder.
      clock: seconds, monotonic.
    Attributes:
      are_known: the last look succeeded; otherwise there may be more writers than those found before.
    """

    def __init__(self, run_folder: str, clock: Callable[[], float]) -> None:
        self.are_known = True
        self._journal = journal_folder(run_folder)
        self._clock = clock
        self._known: dict[str, KnownWriter] = {}
        self._own: set[str] = set()
        self._listed, self._is_settled = -1, False

    def same(self) -> bool:
        """Whether the journal's folder is unchanged since the last look: no writer came or went."""
        try:
            return os.stat(self._journal).st_mtime_ns == self._listed
        except OSError:
            return False

    def look(self) -> None:
        """Find new writers, forget those whose folder has gone, and note signs of those elsewhere."""
        changed, names = 0, set()
        with tolerating(OSError) as unknown, tolerating(FileNotFoundError, NotADirectoryError) as gone:
            changed = os.stat(self._journal).st_mtime_ns  # read before: what comes in between is seen next time
            if changed == self._listed and self._is_settled:
                return
            names = set(os.listdir(self._journal))
            self._listed = changed
        if unknown:  # no descriptor left, or a failing disk: which writers there are stays unknown
            self._listed, self.are_known = -1, False
            return
        if gone:
            self._listed, changed = -1, 0
        self.are_known = True
        for name in self._known.keys() - names:
            self._known.pop(name).let_go()
        for name in names - self._known.keys():
            folder = os.path.join(self._journal, name)
            about = read_json(os.path.join(folder, RunFile.WRITER))
            if about:  # otherwise it is being made, or is no writer
                self._known[name] = KnownWriter(name, folder, about, self._clock())
        self._is_settled = self._known.keys() == names and time.time_ns() - changed > GRAIN_NS

    def disregard(self, id: str) -> None:
        """This writer is the keeper's own: it is sealed and forwarded like others, but the keeper does not wait for
        it."""
        self._own.add(id)

    def sign(self, id: str) -> None:
        """Rows of this writer have arrived."""
        known = self._known.get(id)
        if known is not None:
            known.last_sign = self._clock()

    def note(self, id: str, beat: object) -> None:
        """The heartbeat file's entry of a writer elsewhere; a change is a sign of life."""
        known = self._known.get(id)
        if known is not None and beat != known.beat:
            known.beat = beat
            known.last_sign = self._clock()

    def __iter__(self) -> Iterator[KnownWriter]:
        return iter(sorted(self._known.values(), key=lambda writer: writer.id))

    def get(self, id: str) -> KnownWriter | None:
        """The writer of that id."""
        return self._known.get(id)

    def here(self) -> list[KnownWriter]:
        """Writers on this host, including the keeper's own."""
        return [writer for writer in self if writer.here]

    def living(self) -> list[KnownWriter]:
        """Writers on this host that may still write, without the keeper's own."""
        mine = (w for w in self if w.here and w.id not in self._own and not w.closed and not w.dead)
        return [w for w in mine if w.judged or self._signs(w)]

    def elsewhere(self) -> list[KnownWriter]:
        """Writers on other hosts that have not closed and gave a sign of life recently."""
        return [w for w in self if not w.here and not w.closed and self._signs(w)]

    def _signs(self, writer: KnownWriter) -> bool:
        return self._clock() - writer.last_sign < _SILENT_SECONDS

    def main(self) -> KnownWriter | None:
        """The writer that opened the newest attempt."""
        mains = [writer for writer in self if writer.main]
        return max(mains, key=lambda writer: (writer.attempt, writer.id)) if mains else None

    def filenos(self) -> list[int]:
        """Descriptors that become readable when a watched writer ends."""
        return [fd for writer in self._known.values() if (fd := writer.fileno()) >= 0]

    def let_go(self) -> None:
        """Close all watches."""
        for writer in self._known.values():
            writer.let_go()
