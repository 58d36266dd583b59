"""Shipping one run's folder to its place: what the keeper's child does, and `rollbook push`.

    python -m rollbook.ship.folder RUN [--every=SECONDS] [--final]

Safe to interrupt at any point and harmless to repeat: what is shipped is read from the store. How far it is stands in
data/keeper/shipped.json, for people and for `finish()`.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from rollbook import manifest
from rollbook.errors import Damaged, NotARun, PlaceAway, PlaceError, RollbookError
from rollbook.files import read_json, try_lock, write_json
from rollbook.remote import Origin, begin, origin_of, run_and_place
from rollbook.ship.pages import put_page
from rollbook.ship.snapshot import Snapshots, another_name
from rollbook.storage.places import Place, claim, open_place, perform
from rollbook.storage.places.catalogue import mark_pushed, note_run
from rollbook.storage.places.commit import Commits, Gone, Local, Manifest, NotShipped, plan
from rollbook.storage.places.steps import Away, LookAgain, Unknown, said_of

__all__ = ["Report", "main", "push"]

_SWEEP_BYTES = 64 * 1024 * 1024
_SWEEP_SECONDS = 3600.0
_MANY_SMALL = 64
"""So many small pieces of writers that are done are merged while the run goes on: a week of short-lived actors stays
readable. Those of living writers become fewer by what sealing merges here."""
_MERGE_BYTES = 16 * 1024 * 1024
"""What is merged in one go while a run is written: its memory is taken from the training's machine."""


class Report:
    """What a shipment did.

    Attributes:
      pieces, bytes: that went out.
      files, stored: what the store holds of this folder now.
      swept: pieces that nothing named any more, deleted.
      done: everything that this folder holds is in the store.
    """

    def __init__(self) -> None:
        self.pieces = self.bytes = self.files = self.stored = self.swept = 0
        self.done = False

    def __str__(self) -> str:
        swept = f", deleted {self.swept} that nothing names" if self.swept else ""
        return f"shipped {self.pieces} pieces ({self.bytes:,} bytes){swept}; {self.files} files are in the store"


def push(
    run: str | os.PathLike[str],
    url: str | None = None,
    *,
    final: bool = True,
    patience: float = 40.0,
    anew: bool = False,
    every: float | None = None,
) -> Report:
    """Bring what a run's folder holds into its place, as far as it is not there.

    Args:
      run: the run's folder.
      url: the place; needed once, for a run that was begun without `remote=`.
      final: also what is worth shipping only when the run is over, such as log/.
      patience: seconds that a call is tried again for, and that another process that ships the folder is waited for;
        if it is not final, that process does it.
      anew: also where the run was removed from its place.
      every: after so many seconds at most the next shipment begins: readers are told when to expect it.
    Raises:
      PlaceError: the place cannot be used, or gives no answer. RunExists: another run of that name lies there.
      NotARun: the folder is no run, or nothing says where to ship it.
    """
    folder = os.path.abspath(os.fspath(run))
    manifest.read(folder)
    if url is not None:
        begin(folder, url, home=True)
    origin = origin_of(folder)
    if origin is None:
        raise NotARun(
            f"{folder} is not shipped anywhere: it was begun without remote=. Name a place: rollbook push RUN URL"
        )
    own = os.path.join(folder, "data", "keeper")
    os.makedirs(own, exist_ok=True)
    fd = os.open(os.path.join(own, "ship.lock"), os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        until = time.monotonic() + patience
        while try_lock(fd) is False:
            if not final:
                return Report()  # the keeper of another host of this folder is at it
            if time.monotonic() >= until:
                raise PlaceAway(f"{folder} is being shipped by another process; try again when it is done")
            time.sleep(0.05)
        shipment = _Shipment(folder, origin, final, patience, every)
        if anew:
            shipment.before.pop("known", None)
        return shipment.run()
    finally:
        os.close(fd)


class _Shipment:
    """One go. Whatever happens, shipped.json says how far things are."""

    def __init__(self, folder: str, origin: Origin, final: bool, patience: float, every: float | None = None) -> None:
        self.folder, self.origin, self.final = folder, origin, final
        self.patience, self.every = patience, every
        self.clock_began = time.monotonic()
        self.state_path = os.path.join(folder, "data", "keeper", "shipped.json")
        self.before = read_json(self.state_path)
        self.snapshots = Snapshots(folder, final=final)
        self.base = f"{run_and_place(folder)}/"
        self.commits = Commits(self.base, origin.id, another=another_name)
        self.last: Manifest | None = None
        self.noted = b""
        self.local: Local | None = None
        self.report = Report()

    def run(self) -> Report:
        """Ship."""
        began = time.time()
        try:
            place = open_place(self.origin.url, patience=self.patience)
            if not self.before.get("known"):
                claim(place, make=True)
            if self.origin.home:
                perform(put_page(f"{self.base}run.json", self.folder), place)
            self._ship(place)
            self._merge(place)
            self._sweep(place)
        except (Away, Unknown, LookAgain) as err:
            words = said_of(err, self.origin.url)
            self._tell(began, words)
            raise PlaceAway(words) from None
        except NotShipped as err:
            self._tell(began, str(err))
            raise PlaceAway(str(err)) from None
        except Gone:
            words = f"the run was removed from {self.origin.url}, so it is not shipped there any more"
            self._tell(began, words)
            raise PlaceError(f"{words}. To put it there again: rollbook push --anew {self.folder}") from None
        except RollbookError as err:
            self._tell(began, str(err))
            raise
        self.report.done = True
        self._tell(began, "")
        return self.report

    def _ship(self, place: Place) -> None:
        heard = self._heard()
        beat = heard != self.before.get("heard")  # a clock may have gone back
        for turn in range(2):  # what came while the first was on its way goes with the second
            shipped = perform(
                self.commits.ship(
                    self._look, lambda: self._facts(heard), may_create=not self.before.get("known"), beat=beat
                ),
                place,
            )
            self.before["known"] = True
            self.last = shipped.manifest
            self.report.pieces += shipped.pieces
            self.report.bytes += shipped.bytes
            beat = False
            if not self.final or (turn and not shipped.pieces):
                break
            self.local = None
        if self.origin.home:
            perform(put_page(f"{self.base}run.json", self.folder), place)
            with open(manifest.path_of(self.folder), "rb") as file:
                page = file.read()
            if page != self.noted and perform(note_run(self.base.rstrip("/"), page), place):
                mark_pushed(self.origin.url)
            self.noted = page
        self.report.files = len(shipped.manifest.files)
        self.report.stored = sum(sent_file.stored for sent_file in shipped.manifest.files.values())
        self.before["heard"] = heard
        self.snapshots.keep()

    def _look(self) -> Local:
        named = self.last.files if self.last is not None else _last_names(self.folder)
        self.local = self.snapshots.look(named)
        return self.local

    def _facts(self, heard: float) -> dict[str, object]:
        from rollbook.journal.liveness import host_name

        written = time.time()
        facts: dict[str, object] = {
            "origin": self.origin.id,
            "home": self.origin.home,
            "host": host_name(),
            "written": written,
            "heard": heard,
        }
        if self.every is not None:  # the next one may take as long as this one, or the one before
            took = max(time.monotonic() - self.clock_began, float(self.before.get("took") or 0.0))
            facts["due"] = written + self.every + took
        return facts

    def _heard(self) -> float:
        try:
            return os.stat(os.path.join(self.folder, "data", "keeper", "heartbeat")).st_mtime
        except OSError:
            return 0.0

    def _merge(self, place: Place) -> None:
        """Make fewer and larger pieces of those of writers that are done, where there are many: one go a shipment."""
        if self.final or self.last is None or self.local is None:
            return
        from rollbook.ship.merging import groups_of, merge_group

        names = (path.split("/") for path in self.local.files if path.startswith("data/journal/"))
        live = {name[2] for name in names if name[-1].endswith((".seg", ".log"))}
        group = max(groups_of(self.last, live, _MERGE_BYTES), key=len, default=[])
        if len(group) < _MANY_SMALL:
            return
        try:
            others = perform(self.commits.origins(), place)
            others.pop(self.origin.id, None)
            elsewhere = [c for origin in others.values() for file in origin.files.values() for c in file.covers]
            if merge_group(place, self.commits, group, [*elsewhere, *self.local.elsewhere]):
                self.last, _ = perform(self.commits.manifest(), place)
        except (Away, Unknown, Damaged):
            return

    def _sweep(self, place: Place) -> None:
        """Now and then take away what is not named any more."""
        garbage = int(self.before.get("garbage") or 0) + self.report.bytes
        swept_at = float(self.before.get("swept") or 0.0) or time.time()
        if garbage > max(_SWEEP_BYTES, self.report.stored // 2) or time.time() - swept_at > _SWEEP_SECONDS:
            from rollbook.ship.merging import sweep_steps

            try:
                self.report.swept = perform(sweep_steps(self.commits), place)
            except (Away, Unknown):
                return
            garbage, swept_at = 0, time.time()
        self.before["garbage"], self.before["swept"] = garbage, swept_at

    def _tell(self, began: float, words: str) -> None:
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
        }
        try:
            write_json(self.state_path, state)
            if self.last is not None:
                names = {path: file.sha256 for path, file in self.last.files.items()}
                write_json(os.path.join(os.path.dirname(self.state_path), "shipped-names.json"), names)
        except OSError:
            return

    def _waiting(self) -> list[int]:
        """The sizes of what is not in the store, as far as is known without asking it."""
        try:
            local = self.local or self.snapshots.look()
        except OSError:
            return []
        if self.last is not None:
            return [file.size for file in plan(self.last.files, local.files, (), local.elsewhere, another_name).uploads]
        names = read_json(os.path.join(os.path.dirname(self.state_path), "shipped-names.json"))
        return [file.size for path, file in local.files.items() if names.get(path) != file.sha256]


def _last_names(folder: str) -> Any:
    """The names of the manifest as it was last seen: enough to say what of them is settled."""
    from rollbook.storage.places.commit import Named

    names = read_json(os.path.join(folder, "data", "keeper", "shipped-names.json"))
    return {path: Named("", 0, str(sha)) for path, sha in names.items() if not path.endswith(".seg")}


def main(arguments: list[str] | None = None) -> int:
    """The keeper's child: 0 when everything is in the store, 75 when it may work later, 1 when a person is needed."""
    given = sys.argv[1:] if arguments is None else arguments
    options = [argument for argument in given if argument.startswith("--")]
    (run,) = (argument for argument in given if not argument.startswith("--"))
    every = next((float(option[8:]) for option in options if option.startswith("--every=")), None)
    final = "--final" in options
    try:
        push(run, final=final, every=None if final else every)
    except PlaceAway as err:
        sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {err}\n")
        return 75
    except RollbookError as err:
        sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {type(err).__name__}: {err}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
