"""`wandb.Artifact`: versions of a set of files, each in a folder of the run that logged it.

`<run>/files/artifacts/<name>/v<n>` has the files, and `v<n>.json` next to it the other facts about the version. Files
that equal the latest version make no new one. Versions are counted within a run.
"""

from __future__ import annotations

import atexit
import os

from rollbook.adapters.wandb._current import CommError
from rollbook.adapters.wandb._data import Table, Value, copied
from rollbook.system.files import make_folders
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from typing import Any

    from rollbook.run.run import Run


_ABOUT = ("collection", "type", "description", "metadata", "aliases", "references")


class ArtifactTTL:
    """Accepted: an artifact is a folder of files, which stays until you delete it."""

    INHERIT = None


def _remove(folder: str, pid: int) -> None:
    """Remove a temporary folder at the end of the process that made it, not of one forked from it."""
    import shutil

    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)


class Artifact:
    """Files that belong to a run. Added files are copied into the run when it is logged. Arguments as in wandb."""

    def __init__(
        self,
        name: str,
        type: str,
        description: str | None = None,
        metadata: Mapping[str, object] | None = None,
        incremental: bool = False,
        use_as: str | None = None,
        **_options: object,
    ) -> None:
        self.collection, self.type, self.description = name, type, description
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.aliases: list[str] = []
        self.tags: list[str] = []
        self.ttl: object = None
        self.files_added: list[tuple[str, str]] = []
        self.objects: dict[str, Value] = {}
        self.references: dict[str, str] = {}
        self.version: str | None = None
        self.folder: Path | None = None

    @property
    def name(self) -> str:
        """Its name, with the version once it has one."""
        return self.collection if self.version is None else f"{self.collection}:{self.version}"

    def add_file(self, local_path: str | os.PathLike[str], name: str | None = None, **_options: object) -> None:
        """Add a file. It is copied when the artifact is logged."""
        self.files_added.append((os.fspath(local_path), name or os.path.basename(os.fspath(local_path))))

    def add_dir(self, local_path: str | os.PathLike[str], name: str | None = None, **_options: object) -> None:
        """Add all files below a folder."""
        base = os.fspath(local_path)
        for folder, _folders, files in os.walk(base):
            for file in files:
                path = os.path.join(folder, file)
                self.files_added.append((path, os.path.join(name or "", os.path.relpath(path, base))))

    def add(self, obj: Value, name: str) -> None:
        """Add a value such as a Table. It is logged to the run when the artifact is logged."""
        self.objects[name] = obj

    def new_file(self, name: str, mode: str = "w", **_options: object) -> Any:
        """An open file that is added when it is closed."""
        import tempfile

        folder = tempfile.mkdtemp(prefix="rollbook-artifact-")
        atexit.register(_remove, folder, os.getpid())
        path = os.path.join(folder, os.path.basename(name))
        self.files_added.append((path, name))
        return open(path, mode)

    def add_reference(self, uri: str, name: str | None = None, **_options: object) -> None:
        """Note the address of something stored elsewhere."""
        self.references[name or os.path.basename(str(uri))] = str(uri)
        self.metadata.setdefault("references", []).append(str(uri))

    def remove(self, item: object) -> None:
        """Take an added file or value out again."""
        name = str(getattr(item, "name", item))
        self.files_added = [(source, inside) for source, inside in self.files_added if inside != name]
        self.objects.pop(name, None)

    def wait(self, timeout: float | None = None) -> Artifact:
        """Return at once: nothing is uploaded."""
        return self

    def save(self, *_arguments: object, **_options: object) -> None:
        """Write changed aliases, description and metadata of a logged artifact."""
        if self.folder is not None:
            self._write()

    def files(self, names: Iterable[str] | None = None, per_page: int = 50) -> list[Any]:
        """The files of a logged artifact, each with name, path, size and `download`."""
        wanted = None if names is None else set(names)
        base = self._there()
        return [file for file in files_of(base) if wanted is None or file.name in wanted]

    def get(self, name: str) -> Any:
        """A value that was added; for an artifact read from disk, only its tables. None if there is no such name."""
        if name in self.objects or self.folder is None:
            return self.objects.get(name)
        file = self.folder / f"{name}.table.json"
        if not file.is_file():
            return None
        import json

        held = json.loads(file.read_text(encoding="utf-8"))
        return Table(columns=held["columns"], data=held["data"])

    def get_entry(self, name: str) -> Any:
        """A file of a logged artifact.

        Raises:
          KeyError: it has no such file.
        """
        found = self.files([str(name)])
        if not found:
            raise KeyError(f"the artifact {self.name} has no file {name!r}")
        return found[0]

    get_path = get_entry

    def download(self, root: str | os.PathLike[str] | None = None, **_options: object) -> str:
        """Copy the files into `root`; default: $WANDB_ARTIFACT_DIR or "artifacts", and in it `<name>-<version>`.

        Returns:
          That folder.
        Raises:
          CommError: the artifact was not logged by a run that can be found here.
        """
        import shutil

        artifacts = os.environ.get("WANDB_ARTIFACT_DIR") or "artifacts"
        target = os.fspath(root if root is not None else os.path.join(artifacts, _safe(self.name.replace(":", "-"))))
        shutil.copytree(self._there(), target, dirs_exist_ok=True)
        return os.path.abspath(target) if root is None else target

    checkout = download

    def file(self, root: str | None = None) -> str:
        """Copy its only file; returns the path.

        Raises:
          ValueError: it has several files.
        """
        names = [file.name for file in self.files()]
        if len(names) != 1:
            raise ValueError(f"the artifact {self.name} has {len(names)} files; call download()")
        return os.path.join(self.download(root), names[0])

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return self.manifest.size()

    @property
    def manifest(self) -> Manifest:
        """Its files and references by name, with their checksums."""
        if self.folder is not None:
            held = [ManifestEntry(file.name, file.path) for file in files_of(self.folder)]
        else:
            held = [ManifestEntry(inside, source) for source, inside in self.files_added]
        return Manifest([*held, *(ManifestEntry(inside, ref=uri) for inside, uri in self.references.items())])

    @property
    def digest(self) -> str:
        """The checksum of all files, as wandb computes it: equal files have equal digests."""
        return self.manifest.digest()

    @property
    def file_count(self) -> int:
        """How many files and references it has."""
        return len(self.manifest)

    @property
    def id(self) -> str | None:
        """`<folder of the run>/<name>:<version>`; None before it is logged."""
        return None if self.folder is None else f"{self.folder.parents[3].name}/{self.name}"

    @property
    def state(self) -> str:
        """ "PENDING" before it is logged, then "COMMITTED"."""
        return "PENDING" if self.folder is None else "COMMITTED"

    def is_draft(self) -> bool:
        """Whether it is not logged yet."""
        return self.folder is None

    @property
    def source_name(self) -> str:
        """Its name: there are no links to artifacts here."""
        return self.name

    qualified_name = source_qualified_name = source_name

    def log_to(self, run: Run, aliases: Iterable[str], step: int) -> None:
        """Copy the files into the run as its next version, unless they are those of its latest one."""
        self.aliases = list(dict.fromkeys([*aliases, "latest"]))
        base = run.folder / "files" / "artifacts" / _safe(self.collection)
        earlier = kept_in(run.folder, self.collection)
        if self.folder is None:
            if earlier and not self.objects and self._equals(earlier[-1]):
                self.version, self.folder = earlier[-1].version, earlier[-1].folder
                self.aliases = list(dict.fromkeys([*earlier[-1].aliases, *self.aliases]))
            else:
                self.version = f"v{1 + max(map(_number, base.glob('v*')), default=-1)}"
                self._copy(run, base, step)
        for other in earlier:  # an alias names one version
            if other.version != self.version and set(other.aliases) & set(self.aliases):
                other.aliases = [alias for alias in other.aliases if alias not in self.aliases]
                other.save()
        self.save()

    def _copy(self, run: Run, base: Path, step: int) -> None:
        self.folder = base / str(self.version)
        make_folders(self.folder, inside=run.folder)
        for source, inside in self.files_added:
            copied(run, source, inside, f"artifacts/{self.collection}", step, self.folder)
        for name, value in self.objects.items():
            if isinstance(value, Table):
                self._keep_table(name, value)

    def _keep_table(self, name: str, table: Table) -> None:
        import json

        assert self.folder is not None
        file = self.folder / f"{_safe(name)}.table.json"
        file.write_text(json.dumps({"columns": table.columns, "data": table.data}, default=str), encoding="utf-8")

    def _equals(self, other: Artifact) -> bool:
        import filecmp

        base = other._there()
        there = {file.name for file in files_of(base)}
        return there == {os.path.normpath(inside) for _source, inside in self.files_added} and all(
            os.path.isfile(source) and filecmp.cmp(source, base / inside, shallow=False)
            for source, inside in self.files_added
        )

    def _write(self) -> None:
        import json

        assert self.folder is not None
        about = {name: getattr(self, name) for name in _ABOUT}
        self.folder.with_name(f"{self.version}.json").write_text(json.dumps(about, default=str), encoding="utf-8")

    def _there(self) -> Path:
        if self.folder is None:
            raise CommError(
                f"the artifact {self.name!r} was not found: log it with run.log_artifact() in a run of this folder, or "
                "use the path of its files"
            )
        return self.folder

    def __repr__(self) -> str:
        return f"<Artifact {self.name}>"


class ManifestEntry:
    """A file of an artifact, or a reference to something elsewhere.

    Args:
      path: its name in the artifact.
      local_path: the file; None for a reference.
      ref: the address of a reference.
    """

    def __init__(self, path: str, local_path: str | None = None, ref: str | None = None) -> None:
        self.path = self.name = path
        self.local_path, self.ref = local_path, ref
        self.extra: dict[str, object] = {}

    @property
    def size(self) -> int | None:
        """Bytes of the file; None for a reference."""
        return None if self.local_path is None else os.path.getsize(self.local_path)

    @property
    def digest(self) -> str:
        """MD5 of the file in base 64, as wandb has it; of a reference its address."""
        if self.local_path is None:
            return str(self.ref)
        import base64
        import hashlib

        with open(self.local_path, "rb") as file:
            return base64.b64encode(hashlib.file_digest(file, _md5).digest()).decode("ascii")

    def __repr__(self) -> str:
        return f"<ManifestEntry {self.path}>"


class Manifest:
    """The files of an artifact, by name.

    Args:
      entries: one for each file.
    """

    def __init__(self, entries: Iterable[ManifestEntry]) -> None:
        self.entries = {entry.path: entry for entry in entries}

    def __len__(self) -> int:
        return len(self.entries)

    def digest(self) -> str:
        """The checksum of names and contents."""
        whole = _md5(b"wandb-artifact-manifest-v1\n")
        for path, entry in sorted(self.entries.items()):
            whole.update(f"{path}:{entry.digest}\n".encode())
        return str(whole.hexdigest())

    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size or 0 for entry in self.entries.values())

    def get_entry_by_path(self, path: str) -> ManifestEntry | None:
        """The file of that name; None if there is none."""
        return self.entries.get(path)

    def get_entries_in_directory(self, directory: str) -> list[ManifestEntry]:
        """The files below a folder of the artifact."""
        return [entry for path, entry in self.entries.items() if path.startswith(f"{directory}/")]


def _md5(data: bytes = b"") -> Any:
    from hashlib import md5

    return md5(data, usedforsecurity=False)


class File:
    """A file of a run or of an artifact.

    Args:
      name: its path below `base`.
      base: the folder.
    """

    def __init__(self, name: str, base: Path) -> None:
        self.name, self.path = name, str(base / name)
        self.size = os.path.getsize(self.path)

    def download(self, root: str | os.PathLike[str] = ".", replace: bool = False, exist_ok: bool = False) -> Any:
        """Copy it to `<root>/<name>`; returns the open file.

        Raises:
          FileExistsError: it exists, without `replace` and `exist_ok`.
        """
        import shutil

        target = os.path.join(os.fspath(root), self.name)
        if os.path.exists(target) and not (replace or exist_ok):
            raise FileExistsError(f"{target} exists: pass replace=True, or exist_ok=True to read it")
        if replace or not os.path.exists(target):
            os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
            shutil.copyfile(self.path, target)
        return open(target)

    def __repr__(self) -> str:
        return f"<File {self.name} ({amount(self.size, 'byte')})>"


def files_of(base: Path) -> list[File]:
    """All files below a folder, by name."""
    found = sorted(path for path in base.rglob("*") if path.is_file()) if base.is_dir() else []
    return [File(str(path.relative_to(base)), base) for path in found]


def kept_in(run_folder: Path, collection: str | None = None) -> list[Artifact]:
    """The artifacts that a run logged, or those of one name, in the order of their versions."""
    import json

    base = run_folder / "files" / "artifacts"
    pages = base.glob("*/v*.json") if collection is None else (base / _safe(collection)).glob("v*.json")
    found = []
    for page in sorted(pages, key=lambda page: (page.parent.name, _number(page))):
        try:
            about = json.loads(page.read_text(encoding="utf-8"))
            one = Artifact(about["collection"], about["type"], about["description"], about["metadata"])
            one.aliases, one.version, one.folder = list(about["aliases"]), page.stem, page.with_suffix("")
            one.references = dict(about.get("references") or {})
        except (OSError, ValueError, KeyError, TypeError):  # half written, or somebody else's file
            continue
        found.append(one)
    return found


def find(address: str, run_folders: Iterable[Path], type: str | None = None) -> Artifact:
    """The artifact at "name:alias", "name:v3" or "name", with anything and "/" before it, in the first run that has it.

    One that was not found has no files: its `download` raises.
    """
    collection, _, which = address.rpartition("/")[2].partition(":")
    for folder in run_folders:
        for one in reversed(kept_in(folder, collection)):
            if (which or "latest") in (one.version, *one.aliases) and type in (None, one.type):
                return one
    return Artifact(collection, type or "unspecified")


def _number(path: Path) -> int:
    """The number of a version, from its folder `v<n>` or the file next to it; -1 for other names."""
    digits = path.stem[1:]
    return int(digits) if digits.isdecimal() else -1


def _safe(name: str) -> str:
    return name.replace("/", "_").replace(os.sep, "_").lstrip(".") or "artifact"
