"""The commit protocol: how a run's files get into a store so that no reader sees a row twice or misses one.

    <base>/m/<origin>.json              the manifest of an origin: which files it has shipped, and in which pieces
    <base>/p/<origin>/<stem>-<upload>     pieces; the content of a piece never changes

An origin is one local folder that holds (a part of) the run. The rules:

1. A manifest is replaced only on the condition that it is still the version that was read. The first one is empty and
   is made on the condition that none exists. So a late put cannot bring back what was removed in between.
2. Pieces are uploaded first, then the manifest that names them. What a manifest names is shipped.
3. Every upload has a unique name. A piece whose upload is unconfirmed, or that an earlier process made, is
   never adopted.
4. What is left to ship follows from the manifest in the store, never from memory.
5. After a put that was refused or got no answer, the manifest is read again. If it names what was wanted, the put is
   done. If its epoch has moved, everything unnamed is uploaded again. Otherwise the rest is worked out again.
6. A manifest that vanished was removed with its run: it is never made again.
7. Readers read manifests, then pieces. If a piece is missing, they read its manifest again. They never list
   pieces to find them.
8. Merging uploads new pieces, then the manifest with them in place of the old ones. If that put is refused or unknown,
   the merge had no effect.
9. Sweeping lists the pieces, raises the manifest's epoch (a fence), then deletes listed pieces that no manifest names.

No clock takes part. This module yields operations (see `steps`) and performs none: tests/remote/test_protocol.py drives
it through thousands of schedules with crashes, delays and lost answers. Standard library only.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from rollbook.errors import Damaged, NewerFormat
from rollbook.remote.row_ranges import Cover, are_inside, contain, held_by, left_of, overlap
from rollbook.remote.steps import Delete, Get, List, LookAgain, Missing, Put, Refused, Steps, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

FORMAT = 1
_MOST_TRIES = 12
_LONGEST_PROMISE = 86400.0


class NotShipped(Exception):
    """The store did not accept it this time. Nothing is lost."""


class Gone(Exception):
    """The manifest has vanished: the run was removed from the store."""


class Named(NamedTuple):
    """A file as a manifest names it.

    Attributes:
      piece: the key of the piece that holds it, relative to the base.
      size, sha256: of the file (for a coded piece: of the decoded content).
      covers: the rows it holds; none for files without rows.
      footer: bytes of the Parquet footer with its length and magic; 0 for others.
      coding: "" or "zlib".
      stored: bytes of the piece.
    """

    piece: str
    size: int
    sha256: str
    covers: tuple[Cover, ...] = ()
    footer: int = 0
    coding: str = ""
    stored: int = 0


class LocalFile(NamedTuple):
    """A file of a folder, ready to be shipped.

    Attributes:
      path: relative to the folder, with slashes.
      size, sha256, covers, footer, coding: as in `Named`.
      source: returns the piece's content: bytes, or the path of a file that does not change.
      stored: bytes of the piece.
      cut: returns a file with only these covers; None where that is impossible.
    """

    path: str
    size: int
    sha256: str
    source: Callable[[], Any]
    covers: tuple[Cover, ...] = ()
    footer: int = 0
    coding: str = ""
    stored: int = 0
    cut: Callable[[tuple[Cover, ...]], LocalFile] | None = None


class RemoteManifest(NamedTuple):
    """What an origin has shipped.

    Attributes:
      epoch: raised by each sweep; begins at a random number.
      files: path in the run's folder -> where it is stored.
      about: host, home, time_offset, written (unix seconds) and further facts about the origin: heard, when a row came
        or a writer was last seen; due, when the next manifest is expected at the latest. All by the clock of the
        shipping machine. `stamped`: when the origin reported this, by the store's clock; set once another process has
        changed the files.
      modified: when it was put, by the store's clock; 0.0 where that is not known.
    """

    epoch: int
    files: dict[str, Named]
    about: dict[str, Any]
    modified: float = 0.0

    def promised_until(self, *more: str) -> float:
        """Until when the run counts as alive, by the store's clock: from its last rows, or from when its next manifest
        is due.

        The shipping machine's clock may be wrong by hours, so its times are shifted to the store's clock. A promise of
        more than a day is ignored.

        Args:
          more: further moments that count.
        """
        written, stamped = (self._moment(name) for name in ("written", "stamped"))
        last = max(self._moment(name) for name in ("heard", "due", *more))
        stamped = stamped or self.modified
        if not (written and stamped and last):
            return last
        return stamped + min(last - written, _LONGEST_PROMISE)

    def _moment(self, name: str) -> float:
        value = self.about.get(name)
        return float(value) if isinstance(value, (int, float)) and 0 < value < 2**33 else 0.0

    def facts(self) -> dict[str, Any]:
        """`about`, for a manifest that names the same rows in other files: it carries no new report from the origin."""
        return {**self.about, "stamped": self._moment("stamped") or self.modified} if self.modified else self.about

    def encode(self) -> bytes:
        """The manifest as bytes for the store."""
        files = {
            path: {
                "piece": file.piece,
                "size": file.size,
                "sha256": file.sha256,
                "covers": file.covers,
                "footer": file.footer,
                "coding": file.coding,
                "stored": file.stored,
            }
            for path, file in self.files.items()
        }
        content = {**self.about, "format": FORMAT, "epoch": self.epoch, "files": files}
        return json.dumps(content, separators=(",", ":"), sort_keys=True, default=repr).encode()

    @classmethod
    def decode(cls, data: bytes, where: str = "a manifest") -> RemoteManifest:
        """Read a manifest from the store. It may come from a stranger.

        Raises:
          Damaged: it is no manifest. NewerFormat: a later rollbook wrote it.
        """
        try:
            content = json.loads(data)
            if content["format"] > FORMAT:
                raise NewerFormat(
                    f"{where} has format {content['format']}; this rollbook reads up to {FORMAT}. Upgrade it"
                )
            files = {str(path): _named(file) for path, file in content["files"].items()}
            epoch = int(content["epoch"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Damaged(f"{where} is not a manifest of rollbook") from None
        about = {name: value for name, value in content.items() if name not in ("format", "epoch", "files")}
        return cls(epoch, files, about)


def _named(entry: Any) -> Named:
    covers = tuple(
        (str(table), str(writer), int(lane), str(group), int(first), int(last))
        for table, writer, lane, group, first, last in entry["covers"]
    )
    numbers = [int(entry[name]) for name in ("size", "footer", "stored")]
    piece = str(entry["piece"])
    if piece.startswith("/") or ".." in piece.split("/"):
        raise ValueError("a piece lies outside of its run")
    return Named(piece, numbers[0], str(entry["sha256"]), covers, numbers[1], str(entry["coding"] or ""), numbers[2])


class Shipped(NamedTuple):
    """What a shipment did: how many pieces and bytes went out, and the manifest afterwards."""

    pieces: int
    bytes: int
    manifest: RemoteManifest


class Shipment(NamedTuple):
    """What is to be uploaded, and the name of each file that the manifest keeps."""

    uploads: list[LocalFile]
    kept: dict[str, Named]


def plan(
    named: Mapping[str, Named],
    files: Mapping[str, LocalFile],
    settled: Collection[str] = (),
    elsewhere: Collection[Cover] = (),
    another: Callable[[str, int], str] = lambda path, n: f"{path}.{n}",
) -> Shipment:
    """Work out how to make the manifest match the folder, so that no shipped row is hidden or doubled.

    A file that holds all rows of some pieces replaces them. If it shares rows with a piece without holding all of it,
    the missing rows are cut out of it and shipped alone.

    Args:
      named: what the manifest names now.
      files: what the folder holds.
      settled: names whose content is in other files of the folder.
      elsewhere: rows that other origins have shipped.
      another: makes a name for a file whose own name is taken: (path, 1), (path, 2), …
    """
    named_still = {path: entry for path, entry in named.items() if path in files or path not in settled}
    there, coming = _Index(), _Index()
    for path, entry in named_still.items():
        there.add(path, entry.covers)
    others = held_by(elsewhere)
    uploads: list[LocalFile] = []
    for path, file in sorted(files.items(), key=lambda item: (-_rows(item[1].covers), item[0])):
        known = named_still.get(path)
        if known is not None and known.sha256 == file.sha256:
            continue
        if not file.covers:
            uploads.append(file)
            continue
        touched = {each: covers for each, covers in there.sharing(file.covers).items() if each in named_still}
        fresh = coming.sharing(file.covers)
        held = held_by(cover for covers in (*touched.values(), *fresh.values()) for cover in covers)
        free = left_of(file.covers, others)
        missing = left_of(free, held)
        if not missing and len(touched) < 2:
            continue
        takes_all = free == list(file.covers) and not fresh
        if takes_all and all(contain(file.covers, named_still[each].covers) for each in touched):
            for each in touched:
                del named_still[each]
            uploads.append(file)
        elif missing and file.cut is not None:
            uploads.append(file.cut(tuple(missing)))
        else:
            continue
        coming.add(uploads[-1].path, uploads[-1].covers)
    return Shipment(uploads, _with_names(named_still, uploads, another))


class _Index:
    """Which names hold rows of a stream. Avoids comparing each of ten thousand small files with each other."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, str, int, str], list[tuple[Cover, str]]] = {}

    def add(self, path: str, covers: tuple[Cover, ...]) -> None:
        for cover in covers:
            self._streams.setdefault(cover[:4], []).append((cover, path))

    def sharing(self, covers: tuple[Cover, ...]) -> dict[str, list[Cover]]:
        """The names that share rows with these covers, and which of their covers do."""
        covers_by_path: dict[str, list[Cover]] = {}
        for cover in covers:
            for theirs, path in self._streams.get(cover[:4], ()):
                if theirs[4] <= cover[5] and cover[4] <= theirs[5]:
                    covers_by_path.setdefault(path, []).append(theirs)
        return covers_by_path


def _with_names(
    names: dict[str, Named], uploads: list[LocalFile], another: Callable[[str, int], str]
) -> dict[str, Named]:
    """What is kept; renamed where new files with other content need the name."""
    new = {file.path: file for file in uploads}
    taken = [path for path in names if path in new]
    if not taken:
        return names
    rest = held_by(cover for path, entry in names.items() if path not in new for cover in entry.covers)
    rest = held_by([(*k, *r) for k, rs in rest.items() for r in rs] + [c for file in uploads for c in file.covers])
    result = dict(names)
    for path in taken:
        entry = result.pop(path)
        if not entry.covers or are_inside(entry.covers, rest):
            continue
        n = 1
        while another(path, n) in result or another(path, n) in new:
            n += 1
        result[another(path, n)] = entry
    return result


def _rows(covers: tuple[Cover, ...]) -> int:
    return sum(cover[5] - cover[4] + 1 for cover in covers)


class Local(NamedTuple):
    """What a folder holds at one moment: arguments of `plan`."""

    files: dict[str, LocalFile]
    settled: Collection[str] = ()
    elsewhere: Collection[Cover] = ()


class Commits:
    """The steps of one origin of a run.

    Args:
      base: prefix of the run in the store, ending with "/".
      origin: the origin's id.
      upload_name: returns a new random word each time.
      another: see `plan`.
    """

    def __init__(
        self,
        base: str,
        origin: str,
        upload_name: Callable[[], str] = lambda: os.urandom(8).hex(),
        another: Callable[[str, int], str] = lambda path, n: f"{path}.{n}",
    ) -> None:
        self.base, self.origin, self.upload_name, self.another = base, origin, upload_name, another
        self.manifest_key = f"{base}m/{origin}.json"

    # -- shipping

    def ship(
        self,
        look: Callable[[], Local],
        about: Callable[[], dict[str, Any]] = dict,
        *,
        may_create: bool = True,
        beat: bool = False,
    ) -> Steps[Shipped]:
        """Bring what the folder holds into the store.

        Args:
          look: returns what the folder holds now.
          about: further facts for the manifest.
          may_create: this origin has never had a manifest; otherwise a missing one was removed.
          beat: also replace the manifest when no file has changed.
        Raises:
          NotShipped: the store did not accept it; try again later. Gone: the run was removed from the store.
          Away: no answer.
        """
        pieces: dict[tuple[str, str], Named] = {}
        epoch: int | None = None
        bytes_sent = count = 0
        local: Local | None = None
        for _ in range(_MOST_TRIES):
            manifest, etag = yield from self.manifest()
            if etag is None and not may_create:
                raise Gone(f"{self.manifest_key} is not there any more")
            if etag is None:
                begun = yield from self._begin(about())
                if begun is None:
                    continue
                manifest, etag = begun
            may_create = False
            if manifest.epoch != epoch:
                self._on_fence(pieces)
                epoch = manifest.epoch
            local = local or look()
            proposal = self._plan(manifest, local)
            if not proposal.uploads and proposal.kept == manifest.files and etag is not None and not beat:
                return Shipped(count, bytes_sent, manifest)
            try:
                sent = yield from self._upload([f for f in proposal.uploads if (f.path, f.sha256) not in pieces])
            except LookAgain:
                local = None
                continue
            pieces |= sent
            count, bytes_sent = count + len(sent), bytes_sent + sum(file.stored for file in sent.values())
            files = {**proposal.kept, **{f.path: pieces[f.path, f.sha256] for f in proposal.uploads}}
            new = RemoteManifest(manifest.epoch, files, about())
            if (yield from self._replace(new, etag)) is not None:
                return Shipped(count, bytes_sent, new)
        raise NotShipped(f"{self.manifest_key} was changed by others {_MOST_TRIES} times in a row")

    def _begin(self, about: dict[str, object]) -> Steps[tuple[RemoteManifest, str | None] | None]:
        """Make an empty manifest; None if the outcome is unknown. Its epoch is random, so epochs of two manifests are
        far apart: a process that worked with a removed one notices that the epoch has moved."""
        manifest = RemoteManifest(int(self.upload_name(), 16) % 2**32 << 20, {}, about)
        etag = yield from self._replace(manifest, None)
        return None if etag is None else (manifest, etag)

    def _on_fence(self, pieces: dict[tuple[str, str], Named]) -> None:
        """A sweep may have deleted anything that was uploaded and is not named."""
        pieces.clear()

    def _plan(self, manifest: RemoteManifest, local: Local) -> Shipment:
        return plan(manifest.files, local.files, local.settled, local.elsewhere, self.another)

    def _upload(self, files: list[LocalFile]) -> Steps[dict[tuple[str, str], Named]]:
        """Upload each file as a separate piece. A put without confirmed success is repeated under another name."""
        sent: dict[tuple[str, str], Named] = {}
        for _ in range(_MOST_TRIES):
            names = [self.piece_of(file) for file in files]
            puts = [Put(self.base + name, file.source, create=True) for name, file in zip(names, files, strict=True)]
            answers = (yield puts) if puts else []
            again: list[LocalFile] = []
            for file, name, answer in zip(files, names, answers, strict=True):
                if isinstance(answer, (Refused, Unknown)):
                    again.append(file)
                elif isinstance(answer, Exception):
                    raise answer
                else:
                    sent[file.path, file.sha256] = Named(
                        name, file.size, file.sha256, file.covers, file.footer, file.coding, file.stored or file.size
                    )
            files = again
            if not files:
                return sent
        raise NotShipped(f"{len(files)} pieces could not be put")

    def piece_of(self, file: LocalFile) -> str:
        """A new, unused name that describes the content."""
        stem, dot, extension = file.path.rpartition(".")
        stem = stem if dot and "/" not in extension else file.path
        parts = stem.removeprefix("data/").replace("/", "-")
        return f"p/{self.origin}/{parts}-{self.upload_name()}{(dot and '/' not in extension and '.' + extension) or ''}"

    def manifest(self) -> Steps[tuple[RemoteManifest, str | None]]:
        """(the manifest, its etag), an empty one and None if there is none."""
        try:
            stored = yield Get(self.manifest_key)
        except Missing:
            return RemoteManifest(0, {}, {}), None
        return RemoteManifest.decode(stored.data, self.manifest_key)._replace(modified=stored.modified), stored.etag

    def _replace(self, manifest: RemoteManifest, etag: str | None) -> Steps[str | None]:
        """The new etag; None if the outcome is unknown and has to be read."""
        data = manifest.encode()
        try:
            new: str = yield Put(self.manifest_key, lambda: data, create=etag is None, etag=etag)
            return new
        except (Refused, Unknown):
            return None

    # -- reading

    def origins(self) -> Steps[dict[str, RemoteManifest]]:
        """The manifests of all origins of the run."""
        manifests: dict[str, RemoteManifest] = {}
        entries = yield List(f"{self.base}m/")
        keys = [entry.key for entry in entries if entry.key.endswith(".json")]
        answers = (yield [Get(key) for key in keys]) if keys else []
        for key, answer in zip(keys, answers, strict=True):
            if isinstance(answer, Missing):  # removed in between
                continue
            if isinstance(answer, Exception):
                raise answer
            manifests[key.rpartition("/")[2].removesuffix(".json")] = RemoteManifest.decode(answer.data, key)._replace(
                modified=answer.modified
            )
        return manifests

    def fetch(
        self, wanted: Callable[[RemoteManifest], Mapping[str, str]]
    ) -> Steps[tuple[RemoteManifest, dict[str, object]]]:
        """Pieces of this origin, all of one manifest. If one is missing, the manifest has changed and is read again.

        Args:
          wanted: (manifest) -> {path: file to store it in, or "" to get its bytes}.
        Returns:
          The manifest they belong to, and {path: Stored}.
        Raises:
          NotShipped: the manifest keeps changing. Away: no answer.
        """
        for _ in range(_MOST_TRIES):
            manifest, _etag = yield from self.manifest()
            asked = dict(wanted(manifest))
            gets = [Get(self.base + manifest.files[path].piece, into) for path, into in asked.items()]
            answers = (yield gets) if gets else []
            failures = [answer for answer in answers if isinstance(answer, Exception)]
            if not failures:
                return manifest, dict(zip(asked, answers, strict=True))
            others = [failure for failure in failures if not isinstance(failure, Missing)]
            if others:
                raise others[0]
        raise NotShipped(f"pieces that {self.manifest_key} names are not there")

    # -- merging and sweeping

    def merge(
        self,
        choose: Callable[[RemoteManifest], Collection[str]],
        join: Callable[[dict[str, object]], list[LocalFile]],
        elsewhere: Collection[Cover] = (),
    ) -> Steps[bool]:
        """Replace some pieces with fewer and larger ones; False if it had no effect.

        Args:
          choose: which names of the manifest.
          join: {name: Stored} -> files that hold the same rows together.
          elsewhere: rows that other origins have shipped.
        """
        manifest, etag = yield from self.manifest()
        chosen = list(choose(manifest))
        if etag is None or len(chosen) < 2:
            return False
        answers = yield [Get(self.base + manifest.files[path].piece) for path in chosen]
        if any(isinstance(answer, Exception) for answer in answers):
            return False
        files = join(dict(zip(chosen, answers, strict=True)))
        before = [cover for path in chosen for cover in manifest.files[path].covers]
        if not contain([cover for file in files for cover in file.covers], before):
            raise Damaged(f"what was merged of {self.manifest_key} lacks rows; it is not used")
        rest = {path: piece for path, piece in manifest.files.items() if path not in chosen}
        beyond = left_of((cover for file in files for cover in file.covers), held_by(before))
        if overlap(beyond, [*elsewhere, *(cover for piece in rest.values() for cover in piece.covers)]):
            return False  # rows between the chosen ones are in other files
        if any(file.path in rest for file in files):
            return False
        sent = yield from self._upload(files)
        new = {**rest, **{path: piece for (path, _), piece in sent.items()}}
        return (yield from self._replace(RemoteManifest(manifest.epoch, new, manifest.facts()), etag)) is not None

    def sweep(self, may_go: Callable[[object], bool] = lambda entry: True) -> Steps[int]:
        """Delete the pieces that no manifest names. Returns how many.

        Args:
          may_go: (entry of the listing) -> whether it may be deleted; protects readers that hold a list of files.
        """
        listed = yield List(f"{self.base}p/{self.origin}/")
        manifest, etag = yield from self.manifest()
        if etag is None:  # the run was removed; the manifest is not made again
            return 0
        fenced = RemoteManifest(manifest.epoch + 1, manifest.files, manifest.facts())
        unnamed = _unnamed(self.base, fenced, listed, may_go)
        if not unnamed or (yield from self._replace(fenced, etag)) is None:
            return 0
        yield [Delete(key) for key in unnamed]
        return len(unnamed)


def _unnamed(base: str, manifest: RemoteManifest, listed: list[Any], may_go: Callable[[Any], bool]) -> list[str]:
    names = {base + file.piece for file in manifest.files.values()}
    return [entry.key for entry in listed if entry.key not in names and may_go(entry)]
