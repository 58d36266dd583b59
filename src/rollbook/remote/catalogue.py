"""The catalogue of a remote: what is known of all its runs, in one object. It is derived and incremental, and it states
its age.

    _pages/<project>/<run>.json     the listing's fields of one run; written by the process that ships it
    _catalogue/runs.json.z          all of these in one object, with the etag of each and the time it was made

A reader uses the catalogue while it is younger than a minute. Otherwise it lists the pages, fetches those whose etag
has changed, and writes a new catalogue on the condition that the old one has not changed. If another reader was faster,
only work is lost. A lost catalogue costs only time: `rollbook catalogue URL --rebuild` makes pages and catalogue again
from the runs.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from functools import partial
from typing import Any, NamedTuple

from rollbook.errors import RemoteError
from rollbook.remote.remote import WORKERS, Remote, perform
from rollbook.remote.steps import Get, ListedObject, Missing, Put, Refused, Steps, Unknown
from rollbook.remote.views import folder_of
from rollbook.schema import manifest
from rollbook.system.liveness import host_name

KEY = "_catalogue/runs.json.z"
PAGES = "_pages/"
FRESH_SECONDS = 60.0
_MOST_TRIES = 6
FORMAT = 1


class Catalogue(NamedTuple):
    """What a remote holds.

    Attributes:
      written: unix seconds, by the clock of the machine that made it: before it listed the pages.
      runs: {<project>/<run>: (etag of its page, fields)}.
      problems: what could not be read.
      host: the machine that made it; "" if unknown.
    """

    written: float
    runs: dict[str, tuple[str, dict[str, Any]]]
    problems: list[str]
    host: str = ""


def note_run(run: str) -> Steps[bool]:
    """Bring a run's page up to date with its run.json in the remote. Returns whether it was changed. Tries again if
    another process was faster or the outcome is unknown. Reads the page before run.json: a late process then finds a
    newer run.json, or its put is refused.

    Args:
      run: <project>/<run>.
    Raises:
      Missing: there is no run.json. ValueError, AttributeError, TypeError: it cannot be read. Away: no answer.
    """
    key = f"{PAGES}{run}.json"
    for _ in range(_MOST_TRIES):
        etag, known = None, b""
        try:
            stored = yield Get(key)
            etag, known = stored.etag, stored.data
        except Missing:
            pass
        run_json = yield Get(f"{run}/run.json")
        fields = manifest.listed(manifest.RunJson.of(json.loads(run_json.data)))
        data = json.dumps(fields, separators=(",", ":"), sort_keys=True, default=repr).encode()
        if etag is not None and known == data:
            return False
        try:
            yield Put(key, partial(bytes, data), create=etag is None, etag=etag)
        except (Refused, Unknown):
            continue
        return True
    return False


def mark_pushed(url: str) -> None:
    """Something was pushed from this machine: readers on this machine want to see it at once."""
    try:
        with open(_marker(url), "wb"):
            pass
        moment = time.time_ns()  # the stamp of a new file is up to 10 ms old, so a listing before it would look newer
        os.utime(_marker(url), ns=(moment, moment))
    except (OSError, RemoteError):  # a machine without a cache folder can still ship
        return


def _marker(url: str) -> str:
    return os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(folder_of(url, "a/b")))), "pushed")


def read_catalogue(remote: Remote, *, seconds: float = FRESH_SECONDS) -> Catalogue:
    """The catalogue, made again if it is older than this many seconds (or than the last push from this machine).

    Raises:
      Away: no answer. RemoteError: the remote cannot be used.
    """
    known, etag = _read(remote)
    age = time.time() - known.written
    try:
        pushed = os.stat(_marker(remote.url)).st_mtime
    except (OSError, RemoteError):
        pushed = 0.0
    # By the clock of another machine "after the push" is only certain by as much as clocks may differ here.
    after = pushed if known.host == host_name() else pushed + FRESH_SECONDS
    if etag is not None and -FRESH_SECONDS <= age <= seconds and known.written > after:
        return known
    return _renewed(remote, known, etag)


def _read(remote: Remote) -> tuple[Catalogue, str | None]:
    import msgspec  # shipping does not need it

    try:
        stored = remote.get(KEY)
    except Missing:
        return Catalogue(0.0, {}, []), None
    try:
        text = zlib.decompress(stored.data)
        try:
            content = msgspec.json.decode(text)  # megabytes: half the time of json
        except msgspec.DecodeError:  # NaN, and a few more that json writes
            content = json.loads(text)
        if content["format"] > FORMAT:
            return Catalogue(0.0, {}, []), None
        runs = {str(run): (str(tag), dict(fields)) for run, (tag, fields) in content["runs"].items()}
        return Catalogue(float(content["written"]), runs, [], str(content.get("host", ""))), stored.etag
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error, RecursionError):
        return Catalogue(0.0, {}, []), stored.etag  # damaged: it is made again


def _renewed(remote: Remote, known: Catalogue, etag: str | None) -> Catalogue:
    written = time.time()
    listed = remote.listing(PAGES, sorted(f"{PAGES}{run}.json" for run in known.runs))
    entries = {_run_of(entry): entry for entry in listed if entry.key.endswith(".json")}
    changed = [run for run, entry in entries.items() if known.runs.get(run, ("",))[0] != entry.etag]
    again = set(changed)
    runs = {run: known.runs[run] for run in entries if run not in again}
    problems = []
    for run, answer in zip(changed, perform(_get_all([entries[run].key for run in changed]), remote), strict=True):
        if isinstance(answer, Missing):
            continue
        if isinstance(answer, Exception):
            raise answer
        try:
            runs[run] = (entries[run].etag, dict(json.loads(answer.data)))
        except (ValueError, TypeError, RecursionError):
            problems.append(
                f"{remote.url}: {entries[run].key} cannot be read; rollbook catalogue --rebuild makes it again"
            )
    new = Catalogue(written, dict(sorted(runs.items())), problems, host_name())
    _put(remote, new, etag)
    return new


def _put(remote: Remote, catalogue: Catalogue, etag: str | None) -> None:
    content = {"format": FORMAT, "written": catalogue.written, "host": catalogue.host, "runs": catalogue.runs}
    data = zlib.compress(json.dumps(content, separators=(",", ":"), default=repr).encode(), 6)
    try:
        remote.put(KEY, data, create=etag is None, etag=etag)
    except (Refused, Unknown, RemoteError):  # another reader has made one, or we may only read: ours is good enough
        return


def _run_of(entry: ListedObject) -> str:
    return entry.key[len(PAGES) : -len(".json")]


def _get_all(keys: list[str]) -> Steps[list[Any]]:
    answers: list[object] = (yield [Get(key) for key in keys]) if keys else []
    return answers


def rebuild(remote: Remote) -> Catalogue:
    """Make pages and catalogue again from the runs.

    Raises:
      Away: no answer. RemoteError: the remote cannot be used.
    """
    runs = [
        f"{project}/{run}"
        for project in remote.folders("")
        if project not in ("_pages", "_catalogue")
        for run in remote.folders(f"{project}/")
    ]
    from rollbook.system.daemon_threads import DaemonThreads

    def is_there(run: str) -> bool:
        try:
            perform(note_run(run), remote)
        except Missing:
            return False
        except (ValueError, AttributeError, TypeError):
            pass
        return True

    with DaemonThreads(WORKERS, "rollbook-remote") as pool:
        there = {run for run, is_run in zip(runs, pool.map(is_there, runs), strict=True) if is_run}
    for entry in list(remote.listing(PAGES)):
        if _run_of(entry) not in there:
            remote.delete(entry.key)
    _, etag = _read(remote)
    return _renewed(remote, Catalogue(0.0, {}, []), etag)
