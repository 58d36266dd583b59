"""Ships one run's folder to its remote. The keeper's child and `rollbook push` use it.

    python -m rollbook.remote.push RUN [--every=SECONDS] [--final]

It can be interrupted at any point and repeated without harm: what is shipped is read from the store. Progress is in
data/keeper/shipped.json, for people and for `finish()`.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from rollbook.errors import Damaged, NotARun, RemoteError, RemoteUnreachable, RollbookError
from rollbook.remote import Remote, claim, open_remote, perform
from rollbook.remote.catalogue import mark_pushed, note_run
from rollbook.remote.commit import Commits, Gone, Local, NotShipped, RemoteManifest, plan
from rollbook.remote.run_json import put_run_json
from rollbook.remote.snapshot import Snapshots, another_name
from rollbook.remote.steps import Away, LookAgain, Missing, Unknown, message_of
from rollbook.schema import manifest
from rollbook.schema.addresses import Origin, begin, check_remote, is_copy, origin_of, pulled_from, run_and_base
from rollbook.schema.run_files import MANIFEST_FILE, RunFile, heartbeat_path
from rollbook.system.files import make_folders, pasted, read_json, try_lock, unlock, write_json
from rollbook.system.texts import amount

_SWEEP_BYTES = 64 * 1024 * 1024
_SWEEP_SECONDS = 3600.0
_MANY_SMALL = 64
"""This many small pieces of closed writers are merged during the run, so that a week of short-lived actors stays
readable. Pieces of living writers become fewer when sealing merges parts here."""
_MERGE_BYTES = 16 * 1024 * 1024
"""The most bytes merged at once during a run: the memory is taken from the training's machine."""


class Report:
    """What a shipment did.

    Attributes:
      pieces, bytes: how many were uploaded.
      files, stored: what the store holds of this folder now.
      swept: unnamed pieces that were deleted.
      done: everything in this folder is in the store.
      remark: what is special about the folder, such as that it is a copy; otherwise "".
    """

    def __init__(self) -> None:
        self.pieces = self.bytes = self.files = self.stored = self.swept = 0
        self.done = False
        self.remark = ""

    def __str__(self) -> str:
        swept = f", deleted {self.swept} that nothing names" if self.swept else ""
        remark = f". {self.remark}" if self.remark else ""
        shipped = f"shipped {amount(self.pieces, 'piece')} ({self.bytes:,} bytes){swept}"
        return f"{shipped}; in the store: {amount(self.files, 'file')}{remark}"


def push(
    run: str | os.PathLike[str],
    url: str | None = None,
    *,
    final: bool = True,
    patience: float = 40.0,
    again: bool = False,
    every: float | None = None,
) -> Report:
    """Upload what is missing of a run's folder in its remote.

    Args:
      run: the run's folder.
      url: the remote; needed once, for a run that began without `remote=` and was not pulled.
      final: also ship what is only worth shipping at the end of the run, such as log/.
      patience: seconds that a call is retried for, and the wait for another process that ships the folder. Without
        `final` there is no such wait: the other process does the work.
      again: upload again even if the run was deleted from the remote.
      every: the next shipment begins after this many seconds at most; readers learn when to expect it.
    Raises:
      RemoteError: the remote cannot be used, or does not answer. RunExists: it has another run of that name.
      NotARun: the folder is no run, or no remote is known for it.
    """
    folder = os.path.abspath(os.fspath(run))
    origin = _origin_for(folder, url)
    own = os.path.join(folder, RunFile.KEEPER)
    make_folders(own, inside=folder)
    fd = os.open(os.path.join(own, "ship.lock"), os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        until = time.monotonic() + patience
        while try_lock(fd) is False:
            if not final:
                return Report()  # the keeper of another host ships this folder now
            if time.monotonic() >= until:
                raise RemoteUnreachable(f"{folder} is being shipped by another process; try again when it is done")
            time.sleep(0.05)
        shipment = _Shipment(folder, origin, final, patience, every)
        if again:
            shipment.before.pop("known", None)
        return shipment.run()
    finally:
        unlock(fd)
        os.close(fd)


def _origin_for(folder: str, url: str | None) -> Origin:
    """The origin under which a folder is shipped. A host's partial copy of a run, or a copy of the folder, does not
    become the run's home.

    Raises:
      NotARun: the folder is no run, or no remote is known for it.
    """
    is_part = bool(manifest.read(folder).part)
    origin = origin_of(folder)
    if url is None and origin is None:
        source = pulled_from(folder).get("url")
        url = source if isinstance(source, str) else None
    if url is not None:
        known = origin is not None and origin.url == check_remote(url)
        is_home = origin.home if known and origin is not None else True
        origin = begin(folder, url, home=is_home and not is_part and not is_copy(folder))
    if origin is None:
        raise NotARun(
            f"{folder} is not shipped anywhere: it was begun without remote=. Name a remote: rollbook push RUN URL"
            + (". Or join this part of the run to its folder: rollbook join PART RUN" if is_part else "")
        )
    return origin


class _Shipment:
    """One shipment. In every case, shipped.json reports the progress.

    run.json goes into the store only from the run's home, and never replaces a later one. A host's partial copy of a
    run adds its rows. A copy of the folder ships what is missing, and run.json only if there is none.
    """

    def __init__(self, folder: str, origin: Origin, final: bool, patience: float, every: float | None = None) -> None:
        self.folder, self.origin, self.final = folder, origin, final
        self.patience, self.every = patience, every
        self.clock_began = time.monotonic()
        self.state_path = os.path.join(folder, RunFile.KEEPER, RunFile.SHIPPED)
        self.before = read_json(self.state_path)
        self.snapshots = Snapshots(folder, final=final, url=origin.url)
        self.base = f"{run_and_base(folder)}/"
        self.commits = Commits(self.base, origin.id, another=another_name)
        self.is_part = bool(manifest.look(folder).part)
        self.is_copy = is_copy(folder)
        self.is_home = origin.home and not self.is_part and not self.is_copy
        self.progress = (0, 0)
        self.others: dict[str, RemoteManifest] = {}
        self.last: RemoteManifest | None = None
        self.local: Local | None = None
        self.report = Report()

    def run(self) -> Report:
        """Ship."""
        began = time.time()
        try:
            remote = open_remote(self.origin.url, patience=self.patience)
            if not self.before.get("known"):
                claim(remote, make=True)
            if self.final or self.is_copy:
                self.others = perform(self.commits.origins(), remote)
                self.others.pop(self.origin.id, None)
            self._put_run_json(remote)
            self._ship(remote)
            self._merge(remote)
            self._sweep(remote)
        except (Away, Unknown, LookAgain) as err:
            words = message_of(err, self.origin.url)
            self._write_report(began, words)
            raise RemoteUnreachable(words) from None
        except NotShipped as err:
            self._write_report(began, str(err))
            raise RemoteUnreachable(str(err)) from None
        except Gone:
            words = f"the run was removed from {self.origin.url}, so it is not shipped there any more"
            self._write_report(began, words)
            raise RemoteError(f"{words}. To put it there again: rollbook push --again {pasted(self.folder)}") from None
        except RollbookError as err:
            self._write_report(began, str(err))
            raise
        self.report.done = True
        self._write_report(began, "")
        return self.report

    def _put_run_json(self, remote: Remote) -> None:
        """Put run.json. Finds out whether the folder is still the run's home."""
        if self.is_part:
            self.report.remark = "This is a part of a run: run.json there follows the run's own folder alone"
            return
        progress = manifest.progress(manifest.look(self.folder))
        is_there = perform(
            put_run_json(f"{self.base}{MANIFEST_FILE}", self.folder, create_only=not self.is_home), remote
        )
        if self.is_home and not is_there:  # the run went on elsewhere, or this is an old copy of its folder
            self.is_home = False
            shipped, etag = perform(self.commits.manifest(), remote)
            if etag is not None and _progress_of(shipped) > progress[:2]:
                self.origin = begin(self.folder, self.origin.url, home=False, new_id=True)
                self.others[self.commits.origin] = shipped
                self.commits = Commits(self.base, self.origin.id, another=another_name)
                self.before = {}
        self.progress = progress[:2]
        if not self.is_home:
            self.report.remark = "This is a copy: run.json there follows the run's own folder alone"

    def _ship(self, remote: Remote) -> None:
        heard = self._heard()
        if self.final and not self.is_home and not self._has_news(remote):
            return
        beat = heard != self.before.get("heard")  # a clock may have gone back
        for turn in range(2):  # what arrives during the first upload goes with the second
            shipped = perform(
                self.commits.ship(
                    self._look, lambda: self._facts(heard), may_create=not self.before.get("known"), beat=beat
                ),
                remote,
            )
            self.before["known"] = True
            self.last = shipped.manifest
            self.report.pieces += shipped.pieces
            self.report.bytes += shipped.bytes
            beat = False
            if not self.final or (turn and not shipped.pieces):
                break
            self.local = None
        if self.is_home:
            perform(put_run_json(f"{self.base}{MANIFEST_FILE}", self.folder), remote)
        self._note(remote)
        self.report.files = len(shipped.manifest.files)
        self.report.stored = sum(sent_file.stored for sent_file in shipped.manifest.files.values())
        self.before["heard"] = heard
        self.snapshots.keep()

    def _note(self, remote: Remote) -> None:
        """Update the catalogue."""
        if self.is_part:
            return
        try:
            if perform(note_run(self.base.rstrip("/")), remote):
                mark_pushed(self.origin.url)
        except (Missing, ValueError, AttributeError, TypeError):  # just removed, or not ours
            return

    def _has_news(self, remote: Remote) -> bool:
        """Whether a folder that is not the run's home holds something that the store lacks."""
        named, etag = perform(self.commits.manifest(), remote)
        local = self._look()
        uploads = plan(named.files, local.files, local.settled, local.elsewhere, another_name).uploads
        self._note(remote)
        return bool(uploads) or etag is not None

    def _look(self) -> Local:
        named = self.last.files if self.last is not None else _last_names(self.folder)
        local = self.snapshots.look(named)
        if self.others:  # what others have shipped is not shipped again
            there = {(path, file.sha256) for other in self.others.values() for path, file in other.files.items()}
            local = Local(
                {path: file for path, file in local.files.items() if file.covers or (path, file.sha256) not in there},
                local.settled,
                [
                    *local.elsewhere,
                    *(c for other in self.others.values() for f in other.files.values() for c in f.covers),
                ],
            )
        self.local = local
        return local

    def _facts(self, heard: float) -> dict[str, object]:
        from rollbook.system.liveness import host_name

        written = time.time()
        facts: dict[str, object] = {
            "origin": self.origin.id,
            "home": self.is_home,
            **({"page": list(self.progress)} if self.is_home else {}),
            "host": host_name(),
            "written": written,
            "heard": heard,
        }
        if self.every is not None:  # the next shipment may take as long as this one, or the one before
            took = max(time.monotonic() - self.clock_began, float(self.before.get("took") or 0.0))
            facts["due"] = written + self.every + took
        return facts

    def _heard(self) -> float:
        try:
            return os.stat(heartbeat_path(self.folder)).st_mtime
        except OSError:
            return 0.0

    def _merge(self, remote: Remote) -> None:
        """Merge small pieces of closed writers where there are many; one group a shipment."""
        if self.final or self.last is None or self.local is None:
            return
        from rollbook.remote.merging import groups_of, merge_group

        names = (path.split("/") for path in self.local.files if path.startswith("data/journal/"))
        live = {name[2] for name in names if name[-1].endswith((".seg", ".log"))}
        group = max(groups_of(self.last, live, _MERGE_BYTES), key=len, default=[])
        if len(group) < _MANY_SMALL:
            return
        try:
            others = perform(self.commits.origins(), remote)
            others.pop(self.origin.id, None)
            elsewhere = [c for origin in others.values() for file in origin.files.values() for c in file.covers]
            if merge_group(remote, self.commits, group, [*elsewhere, *self.local.elsewhere]):
                self.last, _ = perform(self.commits.manifest(), remote)
        except (Away, Unknown, Damaged):
            return

    def _sweep(self, remote: Remote) -> None:
        """Now and then, delete pieces that no manifest names."""
        garbage = int(self.before.get("garbage") or 0) + self.report.bytes
        swept_at = float(self.before.get("swept") or 0.0) or time.time()
        if garbage > max(_SWEEP_BYTES, self.report.stored // 2) or time.time() - swept_at > _SWEEP_SECONDS:
            from rollbook.remote.merging import sweep_steps

            try:
                self.report.swept = perform(sweep_steps(self.commits), remote)
            except (Away, Unknown):
                return
            garbage, swept_at = 0, time.time()
        self.before["garbage"], self.before["swept"] = garbage, swept_at

    def _write_report(self, began: float, words: str) -> None:
        waiting = self._waiting() if words else []
        state: dict[str, object] = {
            **{name: self.before[name] for name in ("known", "heard", "garbage", "swept") if name in self.before},
            "time": began,
            "took": time.monotonic() - self.clock_began,
            "done": not words,
            "failures": int(self.before.get("failures") or 0) + 1 if words else 0,
            "words": words,
            "since": (self.before.get("since") or began) if words else None,
            "waiting_files": len(waiting),
            "waiting_bytes": sum(waiting),
            "files": self.report.files or self.before.get("files", 0),
            "bytes": self.report.stored or self.before.get("bytes", 0),
            "final": self.final,
            "due": began + 2 * (time.monotonic() - self.clock_began) + self.every if self.every is not None else None,
        }
        try:
            write_json(self.state_path, state)
            if self.last is not None:
                names = {path: file.sha256 for path, file in self.last.files.items()}
                write_json(os.path.join(os.path.dirname(self.state_path), RunFile.SHIPPED_NAMES), names)
        except OSError:
            return

    def _waiting(self) -> list[int]:
        """The sizes of what the store lacks, so far as is known without asking it."""
        try:
            local = self.local or self.snapshots.look()
        except OSError:
            return []
        if self.last is not None:
            return [file.size for file in plan(self.last.files, local.files, (), local.elsewhere, another_name).uploads]
        names = read_json(os.path.join(os.path.dirname(self.state_path), RunFile.SHIPPED_NAMES))
        return [file.size for path, file in local.files.items() if names.get(path) != file.sha256]


def _progress_of(shipped: RemoteManifest) -> tuple[int, int]:
    """The progress of run.json at an origin's last shipment; (0, 0) if it was not the run's home."""
    page = shipped.about.get("page")
    if not isinstance(page, list) or len(page) != 2 or not all(type(n) is int for n in page):
        return 0, 0
    return page[0], page[1]


def _last_names(folder: str) -> Any:
    """The names of the manifest when it was last seen: enough to know which of them are settled."""
    from rollbook.remote.commit import Named

    names = read_json(os.path.join(folder, RunFile.KEEPER, RunFile.SHIPPED_NAMES))
    return {path: Named("", 0, str(sha)) for path, sha in names.items() if not path.endswith(".seg")}


def main(arguments: list[str] | None = None) -> int:
    """The keeper's child. Exits 0 when everything is in the store, 75 when a retry may work, 1 when a person is
    needed."""
    given = sys.argv[1:] if arguments is None else arguments
    options = [argument for argument in given if argument.startswith("--")]
    (run,) = (argument for argument in given if not argument.startswith("--"))
    every = next((float(option[8:]) for option in options if option.startswith("--every=")), None)
    final = "--final" in options
    try:
        push(run, final=final, every=None if final else every)
    except RemoteUnreachable as err:
        sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {err}\n")
        return 75
    except RollbookError as err:
        sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {type(err).__name__}: {err}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
