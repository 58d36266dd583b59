"""The host of each writer of a run, and the offset of that host's clock from the file server's.

Clocks of hosts differ by milliseconds or by minutes. So rows are placed by time through a writer of another host only
on request.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from rollbook.journal import list_writers
from rollbook.schema import manifest
from rollbook.schema.finished import finished_path, former_writers
from rollbook.schema.run_files import RunFile, data_folder, journal_folder
from rollbook.system.files import names_in, read_json
from rollbook.system.liveness import is_alive


class Host(NamedTuple):
    """The host of a writer.

    Attributes:
      clock: identifies the clock: equal for all writers of one boot of one machine; "" if unknown.
      ahead_ns: how far this clock was ahead of the file server's when the writer began.
      time_offset: unix ns of the writer's rows minus the machine's monotonic clock.
    """

    clock: str
    ahead_ns: int
    time_offset: int = 0


class WriterHosts:
    """The hosts of a run's writers, by id; cached after the first read.

    Args:
      run_folder: the run's folder.
    """

    def __init__(self, run_folder: str) -> None:
        self._journal = journal_folder(run_folder)
        self._run = run_folder
        self._stamp: tuple[int, ...] | None = None
        self._hosts: dict[str, Host] = {}

    def __call__(self) -> Mapping[str, Host]:
        """Every writer with an info file in the journal, or, after sealing, in finished.json."""
        paths = (self._journal, finished_path(self._run), os.path.join(data_folder(self._run), RunFile.WRITERS))
        stamp = tuple(map(_changed, paths))
        if stamp != self._stamp:
            for name, about in former_writers(self._run).items():
                if name not in self._hosts:
                    self._hosts[name] = _host(about)
            for name in names_in(self._journal):
                if name not in self._hosts:
                    about = read_json(os.path.join(self._journal, name, RunFile.WRITER))
                    if about:
                        self._hosts[name] = _host(about)
            self._stamp = stamp
        return self._hosts


def writers_of(run_folder: str) -> list[dict[str, Any]]:
    """See `Book.writers`."""
    pages: dict[str, tuple[Mapping[str, object], bool]] = {}
    pages |= {name: (about, True) for name, about in former_writers(run_folder).items()}
    for info in list_writers(run_folder):
        if info.about:
            pages[info.id] = info.about, info.closed is not None
    writers = []
    for name, (about, closed) in sorted(pages.items()):
        if about.get("keeper"):
            continue
        alive = None if closed else is_alive(about)
        state = "closed" if closed else "unknown" if alive is None else "writing" if alive else "died"
        writers.append(
            {
                "id": name,
                "state": state,
                **{field: about.get(field) for field in ("host", "pid", "attempt", "rank", "main")},
                "whereabouts": about.get("whereabouts") or {},
            }
        )
    _judge_by_keepers(writers, manifest.look(run_folder).writers_died or {})
    return writers


def _judge_by_keepers(writers: list[dict[str, Any]], died: Mapping[str, int]) -> None:
    """Mark side writers of other hosts as dead if their host's keeper counted that many, as `rollbook ls` does."""
    for host, n in died.items():
        unknown = [w for w in writers if w["state"] == "unknown" and w["host"] == host and not w["main"]]
        if len(unknown) <= n:
            for writer in unknown:
                writer["state"] = "died"


def _host(about: Mapping[str, object]) -> Host:
    ahead, offset = (n if type(n) is int else 0 for n in (about.get("clock_offset"), about.get("time_offset")))
    return Host(str(about.get("boot_id") or about.get("host") or ""), ahead, offset)


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
