"""When the power goes, what was removed must be on the disk in its new form: the order of syncs, renames and removals.

No test can cut the power. A disk may write the content of a file, its name and the removal of another in any order,
unless a sync stands between them. So each is noted, and whoever removes or replaces data must have synced before what
holds it from then on.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.keeper.own_files import Lock
from rollbook.keeper.sweeping import sweep_finished
from rollbook.remote.local import FolderRemote
from rollbook.storage.sealing.folder import seal
from rollbook.storage.sealing.merge import SIZES

pytestmark = pytest.mark.skipif(os.name == "nt", reason="folders cannot be synced there")


class Disk:
    """What would survive: files by their inode, and names by their folder.

    Attributes:
      unsafe: files that have their name for good while content or name could be lost: {path: why}.
      lost: what was removed while something was unsafe: (path, {path: why}).
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._synced = str(folder), set[int]()
        self.unsafe: dict[str, str] = {}
        self.lost: list[tuple[str, dict[str, str]]] = []
        self.named: list[str] = []
        self.removed: list[str] = []

    def sync(self, fd: int) -> None:
        state = os.fstat(fd)
        if stat.S_ISDIR(state.st_mode):
            for path in list(self.unsafe):
                if os.path.samestat(os.stat(os.path.dirname(path)), state) and self.unsafe[path] == "name":
                    del self.unsafe[path]
        else:
            self._synced.add(state.st_ino)

    def name(self, path: str) -> None:
        """After a file or folder got its name."""
        inside = [os.path.join(f, n) for f, _, names in os.walk(path) for n in names] if os.path.isdir(path) else [path]
        is_whole = all(os.stat(each).st_ino in self._synced for each in inside)
        self.unsafe[path] = "name" if is_whole else "content"
        self.named.append(path)

    def remove(self, path: str) -> None:
        """Before a file goes."""
        self.removed.append(path)
        self.unsafe.pop(path, None)
        if self.unsafe:
            self.lost.append((path, dict(self.unsafe)))

    def holds(self, path: Any) -> bool:
        return os.path.abspath(path).startswith(self._folder)


@contextmanager
def watched(folder: Path, is_data: Callable[[str], bool]) -> Iterator[Disk]:
    """Note what happens to the files below a folder.

    Args:
      is_data: whether the loss of a file of this path would be a loss.
    """
    disk = Disk(folder)
    unlink = os.unlink

    def naming(change: Callable[..., None]) -> Callable[..., None]:
        def named(made: Any, path: Any, **options: Any) -> None:
            change(made, path, **options)
            if disk.holds(path) and is_data(str(path)):
                disk.name(os.path.abspath(path))

        return named

    def removing(path: Any, **options: Any) -> None:
        if not options and disk.holds(path) and is_data(str(path)):
            disk.remove(os.path.abspath(path))
        unlink(path, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", disk.sync)
        patch.setattr(os, "fdatasync", disk.sync, raising=False)
        for name in ("replace", "rename", "link"):
            patch.setattr(os, name, naming(getattr(os, name)))
        for name in ("unlink", "remove"):
            patch.setattr(os, name, removing)
        yield disk


def rows_and_frames(run: Any) -> None:
    """Rows of a stream, of a rare key, with fills of a later one, episodes and their frames."""
    for step in range(40):
        run.log({"loss": float(step)}, env_step=step)
    run.log({"rare": 1.0}, env_step=40)
    for step in range(3):
        run.log_episode(return_=float(step), length=3, env_step=step)


def test_journal_parts_and_files_of_the_keeper_go_after_what_replaces_them_is_on_the_disk(
    tmp_path: Path, nothing_is_sealed: None
) -> None:
    """When parts are made, when they are merged, when the folders of writers become one file, and when all is over."""
    options: dict[str, Any] = {"dir": tmp_path, "keeper": "inline", "sinks": [], "rules": ()}
    for _ in range(2):
        with rollbook.init("p", "n", resume="allow", **options) as run:
            rows_and_frames(run)
    kept = (".seg", ".log", ".parquet", "writer.json", "closed.json", "finished.json")
    with watched(tmp_path, lambda path: path.endswith(kept)) as disk:
        seal(run.folder)
        seal(run.folder, final=True, sizes=SIZES._replace(at_once=2, first_tier=8))
    assert disk.lost == []
    assert {os.path.basename(path).rpartition(".")[2] for path in disk.removed} == {"seg", "log", "parquet", "json"}
    lock = Lock(str(run.folder))
    assert lock.acquire()
    with watched(tmp_path, lambda path: path.endswith(("finished.json", "plan.json"))) as disk:
        assert sweep_finished(str(run.folder), lock)
    lock.release()
    assert disk.lost == []
    assert [os.path.basename(path) for path in disk.removed] == ["plan.json"]


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_checkpoint_is_on_the_disk_when_it_is_saved_and_before_an_older_one_goes(
    tmp_path: Path, is_folder: bool, nothing_is_sealed: None
) -> None:
    def several(path: Path) -> None:
        path.mkdir()
        for name in ("actor", "critic"):
            (path / name).write_text(name, "utf-8")

    written: dict[str, Any] = {"write": several} if is_folder else {"state": {"w": 1.0}}
    with (
        rollbook.init("p", "n", dir=tmp_path, keeper="inline", sinks=[], rules=()) as run,
        watched(tmp_path, lambda path: "/ckpt/" in path and "/." not in path) as disk,
    ):
        for step in range(3):
            run.save_checkpoint(**written, env_step=step, keep=1)
            assert disk.unsafe == {}
    assert disk.lost == []
    assert len(disk.named) >= 3


def test_what_a_folder_as_a_remote_says_to_have_is_on_its_disk(tmp_path: Path) -> None:
    remote = FolderRemote("file", str(tmp_path / "remote"))
    (tmp_path / "part").write_bytes(b"rows")
    with watched(tmp_path / "remote", lambda path: True) as disk:
        for key, data in (("a/bytes", b"rows"), ("a/file", tmp_path / "part")):
            remote.put(key, data)
            assert disk.unsafe == {}
    assert len(disk.named) == 2
