"""Saves checkpoints atomically, with their exact position in the run.

    checkpoint = run.save_checkpoint({"policy": weights, "rng": rng.bit_generator.state}, score=mean_return, keep=3)
    state = load(checkpoint.path)

Files are `ckpt/iteration_<n>.pth.tar` (torch tensors inside: `torch.load(path)` reads them with its defaults) or
`ckpt/iteration_<n>.ckpt` (see `capture.checkpoints.container`). `<n>` is `gradient_step`, or else the first known
clock. `ckpt_best.*` is the one with the best score: a hard link to a file that rollbook wrote, or a symbolic link to a
folder or to a framework's file. Score, clocks, positions and random states are stored in the journal, not in the file.

The table `checkpoints` has one row for each saved checkpoint. When the checkpoint is deleted, it gets one more row with
`kept` = false, the same `checkpoint_id` and the same clocks.
"""

from __future__ import annotations

import json
import os
import time
from _thread import RLock
from functools import partial
from pathlib import Path

from rollbook.capture.checkpoints import random_states
from rollbook.capture.checkpoints.folder import CkptFolder, is_better
from rollbook.errors import BadInput
from rollbook.schema.clocks import UNKNOWN, as_clock
from rollbook.system.files import exists, is_file, is_folder
from rollbook.system.guard import handled_by, tolerating
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from rollbook.protocols import Recorder
    from rollbook.schema.shapes import CheckpointEntry


class Checkpoint:
    """The result of `save_checkpoint`; can be passed to `scope(name, at=...)`.

    Attributes:
      id: unique in the run; "" if nothing could be saved.
      path: the file or folder; None if nothing could be saved.
      clocks: the clocks at the time of the save.
      score: as given, None without one.
      is_best: whether its score was the best so far.

    Its truth value is false if nothing was saved.
    """

    __slots__ = ("clocks", "id", "is_best", "path", "score")

    def __init__(
        self, id: str, path: Path | None, clocks: dict[str, int], score: float | None = None, is_best: bool = False
    ) -> None:
        self.id, self.path, self.clocks, self.score, self.is_best = id, path, clocks, score, is_best

    def __bool__(self) -> bool:
        """Whether anything was saved."""
        return self.path is not None

    def __repr__(self) -> str:
        where = self.path.name if self.path is not None else None
        return f"Checkpoint({self.id!r}, {where!r}, {self.clocks}, score={self.score}, is_best={self.is_best})"


class Checkpoints:
    """The checkpoints of one run.

    Args:
      recorder: gets rows of the table `checkpoints`, and failures.
      folder: the run's folder.
      positions: returns {writer: {lane: last sequence number}} of this process: the position for a later restore.
      counts: returns {scope: environment steps counted}, from which a restore counts on.

    Threads may save at once; each gets its own file name. Nothing raises unless the run is strict. A failure is counted
    as `checkpoint_failed` and leaves every older checkpoint unchanged.
    """

    def __init__(
        self,
        recorder: Recorder,
        folder: str | os.PathLike[str],
        positions: Callable[[], Mapping[str, Mapping[str, int]]] | None = None,
        counts: Callable[[], Mapping[str, int]] | None = None,
    ) -> None:
        self._recorder = recorder
        self._run_folder = Path(folder)
        self._positions, self._counts = positions, counts
        self._files: CkptFolder | None = None
        self._saved = 0
        # Held for bookkeeping, never while a file is written. Re-entrant, because SIGTERM handlers often save.
        self._lock = RLock()
        self._pid = os.getpid()

    def __repr__(self) -> str:
        best = self.best_score
        return f"<Checkpoints in {self._run_folder / 'ckpt'}" + ("" if best is None else f", best score {best:g}") + ">"

    @property
    def best_score(self) -> float | None:
        """The best score among the kept checkpoints, including those of earlier attempts; None without one."""
        with _held(self._lock):
            files = self._files = self._files or CkptFolder(self._run_folder / "ckpt")
            files.refresh()
            best = files.best()
        return None if best is None else best["score"]

    def save(
        self,
        state: object = None,
        *,
        score: object = None,
        write: Callable[[Path], object] | None = None,
        path: str | os.PathLike[str] | None = None,
        keep: int | None = None,
        clocks: Mapping[str, object] | None = None,
        higher_is_better: bool = True,
        rng: bool | Mapping[str, object] = True,
        through: Collection[str] = (),
    ) -> Checkpoint:
        """Save a checkpoint; returns when it is on disk.

        Args:
          state: nested dicts and lists of numbers, text, arrays, torch tensors.
          score: a number; the best so far becomes `ckpt_best.*`. NaN is never best.
          write: instead of `state`, a function of your own. It gets a path `…/iteration_<n>` without suffix and may
            write a file of that name with any suffix, or a folder.
          path: instead of both, an existing file or folder. It is registered, not copied, and never deleted; with the
            best score so far, `ckpt_best` points to it.
          keep: delete older checkpoints except the best and the `keep` newest. None: keep all.
          clocks: clock -> reading; None takes those of the run.
          higher_is_better: False for a loss.
          rng: also store the random states of this process; a dict adds further generators by name (see
            `random_states`).
          through: names of clocks; see `Run.save_checkpoint`.
        """
        known = _known(self._recorder.clocks_now() if clocks is None else clocks)
        with handled_by(self._failed, known):  # from the disk, torch, or a function of the user
            return self._save(state, score, write, path, keep, known, higher_is_better, rng, through)
        return Checkpoint("", None, known)

    def _failed(self, known: dict[str, int], err: Exception) -> None:
        what = str(err).partition("\n")[0] if isinstance(err, BadInput) else f"{type(err).__name__}: {err}"[:400]
        self._recorder.count(
            "checkpoint_failed", 1, f"save_checkpoint({_shown(known)}): {what}. Older checkpoints are untouched"
        )

    def _save(
        self,
        state: object,
        score: object,
        write: Callable[[Path], object] | None,
        path: str | os.PathLike[str] | None,
        keep: int | None,
        clocks: dict[str, int],
        higher_is_better: bool,
        rng: bool | Mapping[str, object],
        through: Collection[str],
    ) -> Checkpoint:
        # Check what was asked for.
        if sum(given is not None for given in (state, write, path)) > 1:
            raise BadInput("more than one of state, write= and path= was given; a checkpoint is one of them")
        if keep is not None and as_clock(keep) is None:
            raise BadInput(f"keep={keep!r:.80} must be an integer, or None to keep all checkpoints")
        if self._pid != os.getpid():  # in a forked child a thread that does not exist may hold the lock
            self._pid, self._lock, self._files = os.getpid(), RLock(), None
        # Read the position before the (long) writing: other threads continue to log meanwhile.
        started = time.monotonic()
        positions = dict(self._positions()) if self._positions is not None else {}
        counts = dict(self._counts()) if self._counts is not None else {}
        random = {} if rng is False else random_states.take(None if rng is True else rng)
        number = self._score(score)
        with _held(self._lock):
            self._saved += 1
            files = self._files = self._files or CkptFolder(self._run_folder / "ckpt")
            files.refresh()
            stem = f"iteration_{_number(clocks, self._saved + len(files.entries))}"

        # Write the file without the lock, and describe it as a row.
        kind, suffix, where = _written(files, stem, state, write, path)
        identity = f"{where.name.partition('.')[0][:40]}-{os.urandom(3).hex()}"
        row: dict[str, object] = {
            "checkpoint_id": identity,
            "path": self._shown_path(where),
            "score": number,
            "kept": True,
            "positions": json.dumps(positions),
            "state": random_states.dumps(random),
            "format": kind,
            "higher_is_better": higher_is_better,
        }
        if counts:
            row["counts"] = json.dumps(counts)
        if through:
            row["through"] = json.dumps({name: clocks[name] for name in through if name in clocks})
        # List it, and link the best one; then log the row, so that it knows whether it is the best.
        with _held(self._lock):
            if kind == "external":
                self._disown(files, self._shown_path(where))
            best = files.best()
            is_best = number is not None and (best is None or is_better(number, best, higher_is_better))
            entry: CheckpointEntry = {
                "id": identity,
                "name": where.name if kind != "external" else None,
                "path": self._shown_path(where),
                "score": number,
                "higher_is_better": higher_is_better,
                "format": kind,
                "clocks": clocks,
            }
            if is_best:
                name = partial(files.set_best, where, suffix, ours=kind != "external")
                self._tolerating("the second name of the best checkpoint", name)
            self._tolerating("the list of checkpoints", files.add, entry)
        row["is_best"] = is_best
        row["seconds"] = time.monotonic() - started
        self._record(row, clocks)
        if keep is not None:
            self._retire(files, keep)
        return Checkpoint(identity, where, clocks, number, is_best)

    def retire(self, identities: Collection[str]) -> set[str]:
        """Delete the files of these checkpoints, except that of the best one. Each gets a row that records the
        deletion.

        Args:
          identities: their ids.
        Returns:
          The ids of the deleted ones.
        """
        with _held(self._lock):
            files = self._files = self._files or CkptFolder(self._run_folder / "ckpt")
            files.refresh()
            best = files.best()
            self._delete(files, [e for e in files.entries if e["id"] in identities and e["name"] and e is not best])
            return set(identities) - {entry["id"] for entry in files.entries}

    def _retire(self, files: CkptFolder, keep: int) -> None:
        with _held(self._lock):
            self._delete(files, files.surplus(int(keep)))

    def _delete(self, files: CkptFolder, entries: list[CheckpointEntry]) -> None:
        for entry in entries:
            # First the row, then the deletion: a crash in between leaves an extra file, not a row without its file.
            self._report_gone(entry, self._shown_path(files.path / str(entry["name"])))
            self._tolerating(f"deleting {entry['name']}", files.delete, entry)

    def _disown(self, files: CkptFolder, path: str) -> None:
        """Mark earlier checkpoints of a registered file as gone: the file now holds another checkpoint."""
        for entry in [entry for entry in files.entries if entry["name"] is None and entry.get("path") == path]:
            self._report_gone(entry, path)
            self._tolerating("the list of checkpoints", files.forget, entry)

    def _report_gone(self, entry: CheckpointEntry, path: str) -> None:
        row: dict[str, object] = {
            "checkpoint_id": entry["id"],
            "path": path,
            "score": entry["score"],
            "is_best": False,
            "kept": False,
            "format": entry["format"],
            "higher_is_better": entry["higher_is_better"],
        }
        self._record(row, entry["clocks"])

    def _record(self, row: dict[str, object], clocks: Mapping[str, int]) -> None:
        # As columns: clocks passed as arguments would set the run's clocks, which have advanced since (other threads
        # log while a file is written).
        readings = {name: [clocks.get(name, UNKNOWN)] for name in {**self._recorder.clocks_now(), **clocks}}
        self._recorder.record("checkpoints", row, clock_columns=readings)

    def _tolerating(self, what: str, work: Callable[..., object], *arguments: object) -> bool:
        """Do work on which the checkpoint itself does not depend."""
        with handled_by(self._report_upkeep, what, kinds=OSError):
            work(*arguments)
            return True
        return False

    def _report_upkeep(self, what: str, err: OSError) -> None:
        self._recorder.count("checkpoint_upkeep", 1, f"{what}: {err}. The checkpoint itself is whole")

    def _score(self, score: object) -> float | None:
        if score is None:
            return None
        number = scalar_of(score)
        if number is None:
            self._recorder.count(
                "checkpoint_score",
                1,
                f"score={score!r} must be a number, so this checkpoint cannot become the best one. Pass a float",
            )
            return None
        return None if number != number else float(number)

    def _shown_path(self, path: Path) -> str:
        with tolerating(ValueError):
            return path.absolute().relative_to(self._run_folder.absolute()).as_posix()
        return str(path.absolute())


def load(path: str | os.PathLike[str], *, weights_only: bool = True, map_location: object = None) -> Any:
    """The state in a checkpoint file that rollbook or torch wrote. Every part keeps its type.

    Args:
      weights_only, map_location: for files that torch wrote; see `torch.load`. The default executes nothing.
    Raises:
      BadInput: another tool wrote it and has to read it. Damaged: it is incomplete. OSError: the disk fails.
    """
    from rollbook.capture.checkpoints import container, torch_files

    if exists(path) and not is_file(path) and not is_folder(path):
        raise BadInput(f"{os.fspath(path)} is a pipe or a device, not a checkpoint; it is not opened")
    if container.is_container(path):
        return container.read(path)
    if torch_files.is_torch_file(path):
        return torch_files.load(path, weights_only=weights_only, map_location=map_location)
    if not exists(path):
        raise FileNotFoundError(f"the checkpoint {os.fspath(path)} is not there; it may have been deleted by keep=")
    raise BadInput(
        f"{os.fspath(path)} was written neither by rollbook nor by torch, so rollbook cannot read it. Load it with "
        "what wrote it."
    )


class _held:
    """`with _held(lock):` a lock that is held for milliseconds.

    Raises:
      TimeoutError: another thread has held it for thirty seconds: the disk hangs.
    """

    __slots__ = ("_lock",)

    def __init__(self, lock: RLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=_LOCK_SECONDS):
            raise TimeoutError(f"another thread has held the list of checkpoints for {_LOCK_SECONDS:g} s")

    def __exit__(self, *_exc: object) -> None:
        self._lock.release()


_LOCK_SECONDS = 30.0


def _written(
    files: CkptFolder,
    stem: str,
    state: object,
    write: Callable[[Path], object] | None,
    path: str | os.PathLike[str] | None,
) -> tuple[str, str, Path]:
    """(format, suffix, file) of a checkpoint, once its file is there."""
    if path is not None:
        where = Path(path)
        if not exists(where):
            raise FileNotFoundError(f"path={os.fspath(path)!r} does not exist. Register it once it is written")
        suffix = "" if is_folder(where) else where.suffix
        return "external", ".pth.tar" if where.name.endswith(".pth.tar") else suffix, where
    if write is not None:
        where = files.put_own(stem, write)
        return "custom", "".join(where.suffixes), where
    kind, suffix, writer = _own_format(state)
    return kind, suffix, files.put(stem, suffix, lambda target: writer(target, state))


def _own_format(state: object) -> tuple[str, str, Callable[[Path, Any], None]]:
    from rollbook.capture.checkpoints import container, torch_files

    if torch_files.holds_tensors(state):
        return "torch", ".pth.tar", torch_files.save

    def write(target: Path, state: object) -> None:
        with open(target, "wb") as file:
            container.write(file, state)

    return "ckpt", ".ckpt", write


def _known(clocks: Mapping[str, object]) -> dict[str, int]:
    readings = {name: as_clock(value) for name, value in clocks.items() if value is not None}
    return {name: value for name, value in readings.items() if value is not None}


def _number(clocks: Mapping[str, int], otherwise: int) -> int:
    if "gradient_step" in clocks:
        return clocks["gradient_step"]
    return next(iter(clocks.values()), otherwise)


def _shown(clocks: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in clocks.items())
