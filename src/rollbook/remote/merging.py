"""Makes pieces of a run in a remote fewer and larger, and deletes those that no manifest names. Any machine can do it.

Small pieces of an origin are fetched into a temporary folder, merged as sealing merges them, and put in place of the
small ones (`Commits.merge`). If another process ships in between, its manifest wins, and the merge has no effect.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Collection
from functools import partial
from itertools import accumulate
from typing import Any

from rollbook.remote import Remote, perform
from rollbook.remote.commit import Commits, LocalFile, RemoteManifest
from rollbook.remote.row_ranges import Cover
from rollbook.remote.snapshot import Snapshots, another_name
from rollbook.remote.steps import Away, List, Steps, Unknown, message_of
from rollbook.schema.run_files import PartName

SMALL_BYTES = 4 * 1024 * 1024
"""Pieces below this size are merged with others of their table, if there are any."""

_AT_ONCE = 64 * 1024 * 1024
_FEW = 2
SHARED_ROWS = 16 * 1024
"""Streams with fewer rows share a piece with others of their table; metrics in long form."""
_GRACE_SECONDS = 3600.0
"""How long Parquet pieces stay after no manifest names them, for programs that hold a list of files. rollbook's own
readers do not need this."""


class Tidied:
    """What was done: the number of pieces merged into others, and of pieces deleted."""

    def __init__(self) -> None:
        self.merged = self.swept = 0

    def __str__(self) -> str:
        return f"merged {self.merged} small pieces, deleted {self.swept} that nothing names"


def tidy(remote: Remote, run: str, *, grace: float = 3600.0) -> Tidied:
    """Merge the small pieces of all origins of a run, and sweep them.

    Args:
      run: <project>/<run>.
      grace: seconds that unnamed Parquet pieces stay, for programs that hold a list of files.
    Raises:
      RemoteError: the remote cannot be used.
    """
    report = Tidied()
    try:
        origins = perform(Commits(f"{run}/", "").origins(), remote)
        for id in origins:
            commits = Commits(f"{run}/", id, another=another_name)
            elsewhere = [
                c for origin in origins if origin != id for f in origins[origin].files.values() for c in f.covers
            ]
            report.merged += merge_small(remote, commits, elsewhere)
            report.swept += perform(sweep_steps(commits, grace=grace), remote)
    except (Away, Unknown) as err:
        from rollbook.errors import RemoteUnreachable

        raise RemoteUnreachable(message_of(err, remote.url)) from None
    return report


def sweep_steps(commits: Commits, *, grace: float = _GRACE_SECONDS) -> Steps[int]:
    """Sweep an origin. Parquet pieces go only when they are older than the grace period, by the store's clock."""
    newest = 0.0

    def may_go(entry: Any) -> bool:
        return not entry.key.endswith(".parquet") or newest - entry.modified >= grace

    listed = yield from _newest(commits)
    newest = listed
    return (yield from commits.sweep(may_go))


def _newest(commits: Commits) -> Steps[float]:
    entries = yield List(f"{commits.base}m/")
    return max((entry.modified for entry in entries), default=0.0)


def merge_small(remote: Remote, commits: Commits, elsewhere: Collection[Cover] = ()) -> int:
    """Merge the small pieces of an origin, table by table. Returns how many were merged into others."""
    manifest, _ = perform(commits.manifest(), remote)
    done = 0
    for group in groups_of(manifest):
        done += len(group) if merge_group(remote, commits, group, elsewhere) else 0
    return done


def merge_group(remote: Remote, commits: Commits, group: list[str], elsewhere: Collection[Cover] = ()) -> bool:
    """Replace the manifest's pieces of these names with larger ones; False if it had no effect."""
    with tempfile.TemporaryDirectory(prefix="rollbook-merge-") as folder:
        return perform(commits.merge(partial(_still_there, group), partial(_join, folder=folder), elsewhere), remote)


def _still_there(group: list[str], manifest: RemoteManifest) -> list[str]:
    return group if all(path in manifest.files for path in group) else []


def groups_of(manifest: RemoteManifest, without: Collection[str] = (), at_once: int = _AT_ONCE) -> list[list[str]]:
    """Groups of names of small parts, one table each. Within a stream, only neighbours without a larger part between
    them.

    Args:
      without: writers whose rows are left alone.
      at_once: the most bytes in a group.
    """
    groups = (_as_fit(manifest, paths, at_once) for paths in _small_parts(manifest, without).values())
    return [group for group in groups if len(group) >= _FEW]


def _small_parts(manifest: RemoteManifest, without: Collection[str]) -> dict[str, list[str]]:
    """{table: its small parts}: those of several streams, then what can go together of each single stream."""
    tables: dict[str, list[str]] = {}
    streams: dict[tuple[str, str, int, str], list[tuple[int, str]]] = {}
    for path, file in sorted(manifest.files.items()):
        if any(cover[1] in without for cover in file.covers):
            continue
        if len(file.covers) > 1 and path.endswith(".parquet"):
            if file.stored < SMALL_BYTES:
                tables.setdefault(file.covers[0][0], []).append(path)
        elif file.covers:
            streams.setdefault(file.covers[0][:4], []).append((file.covers[0][4], path))
    for (table, *_), parts in streams.items():
        if table in ("fills", "marks"):
            continue
        stretch = _longest_run(manifest, [path for _, path in sorted(parts)])
        rows = sum(cover[5] - cover[4] + 1 for path in stretch for cover in manifest.files[path].covers)
        if len(stretch) > 1 or rows < SHARED_ROWS:
            tables.setdefault(table, []).extend(stretch)
    return tables


def _as_fit(manifest: RemoteManifest, paths: list[str], at_once: int) -> list[str]:
    """The first of these parts that have at most this many bytes together."""
    sizes = accumulate(manifest.files[path].size for path in paths)
    return [path for path, size in zip(paths, sizes, strict=True) if size <= at_once]


def _longest_run(manifest: RemoteManifest, paths: list[str]) -> list[str]:
    """The longest stretch of small parts. A stream that has only small parts goes whole."""
    best: list[str] = []
    run: list[str] = []
    for path in paths:
        file = manifest.files[path]
        run = [*run, path] if path.endswith(".parquet") and file.stored < SMALL_BYTES else []
        if sum(manifest.files[each].size for each in run) > _AT_ONCE // 8:
            run = run[1:]
        best = run if len(run) > len(best) else best
    return best


def _join(got: dict[str, Any], folder: str) -> list[LocalFile]:
    """Merge the parts in a folder, as for a finished run."""
    from rollbook.storage import merge

    for path, stored in got.items():
        target = os.path.join(folder, "run", *path.split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as part:
            part.write(stored.data)
    problems: list[str] = []
    merge(os.path.join(folder, "run"), final=True, problems=problems, small_rows=SHARED_ROWS)
    files = []
    for path, file in Snapshots(os.path.join(folder, "run")).look().files.items():
        if PartName.parse(path.rpartition("/")[2]) is not None:
            data = file.source()
            if not isinstance(data, bytes):
                with open(data, "rb") as whole:
                    data = whole.read()
            name = path
            if name.rpartition("/")[2].startswith("merged."):  # merge numbers of the folder mean nothing here
                digits = int(hashlib.sha256(data).hexdigest()[:7], 16)
                name = f"{path.rpartition('/')[0]}/merged.{1_000_000 + digits}.parquet"
            files.append(file._replace(path=name, source=partial(bytes, data)))
    return files
