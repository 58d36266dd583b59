"""A run on a host that does not see its folder: the host keeps a part of the run, in a folder with the same identity.

The data in a pickled run (`extract_of`) is enough to make a part. The nonce identifies the run, not the path: a folder
at another path with the same nonce is the run. Writers, journal and sealing of a part are the usual ones. With
`remote=` its keeper ships it to the same remote. Without, it stays on the host until `rollbook join` merges it into the
run.
"""

from __future__ import annotations

import os
import tempfile
import time

from rollbook.errors import NotARun
from rollbook.schema import manifest
from rollbook.schema.run_files import MANIFEST_FILE, RunFile
from rollbook.system import liveness
from rollbook.system.files import make_folders
from rollbook.system.guard import ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from rollbook.schema.manifest import RunJson

_TRAVELS = ("format", "rollbook", "id", "project", "name", "nonce", "created", "clocks", "x", "remote")
_OF_AN_ATTEMPT = ("n", "writer", "started", "status", "parent", "cut", "checkpoint")
_MADE_SECONDS = 5.0
"""Seconds to wait for the run.json of a folder that another process is creating."""


def extract_of(about: RunJson, attempt: int) -> dict[str, Any]:
    """The data that another host needs to keep a part of the run: a few hundred bytes of plain data."""
    entry = manifest.entry_of(about, attempt)
    extract: dict[str, object] = {name: value for name, value in about.as_json().items() if name in _TRAVELS and value}
    extract["attempts"] = [
        {name: value for name, value in entry.as_json().items() if name in _OF_AN_ATTEMPT and value is not None}
    ]
    extract["home"] = {name: liveness.identity()[name] for name in ("host", "boot_id", "pid_ns")}
    return extract


def home_is_here(extract: Mapping[str, object]) -> bool:
    """Whether the run was pickled on this host. Then a missing folder is gone, not on another host."""
    home = extract.get("home")
    return isinstance(home, dict) and liveness.shares_pids(home)


def folder_here(folder: str, nonce: str, extract: Mapping[str, object]) -> tuple[str, bool]:
    """The folder in which this host's writers of a run write.

    Args:
      folder: the run's folder where it was opened.
      nonce: the run's nonce.
      extract: the result of `extract_of` there.
    Returns:
      (the folder, whether it is a part that only this host sees).
    Raises:
      NewerFormat: a later rollbook wrote the run that is here. OSError: no folder can be created, neither in this
        host's root folder nor in its folder for temporary files.
    """
    raised: OSError | None = None
    for candidate in (folder, *_candidates(extract)):
        about = _read(candidate)
        if about is not None and _is_of_run(about, nonce):
            is_part = bool(about.part)
            if is_part:
                _add_attempt(candidate, extract)
            return candidate, is_part
    for candidate in _candidates(extract):
        try:
            if _make(candidate, folder, nonce, extract):
                made = _read(candidate)
                return candidate, made is not None and bool(made.part)
        except ours(OSError) as err:
            raised = err
    raise raised or OSError(f"no folder for a part of run {extract.get('id')} on this host: others are in its place")


def _candidates(extract: Mapping[str, object]) -> Iterator[str]:
    """Possible folders of a part: below this host's root folder, else among temporary files."""
    name = f"{extract['name']}-{extract['id']}"
    yield os.path.join(os.path.abspath(os.environ.get("ROLLBOOK_DIR") or "runs"), str(extract["project"]), name)
    user = getattr(os, "getuid", lambda: "user")()
    yield os.path.join(tempfile.gettempdir(), f"rollbook-parts-{user}", str(extract["project"]), name)


def _read(folder: str) -> RunJson | None:
    with tolerating(NotARun, OSError):
        return manifest.read(folder, to_continue=True)
    return None


def _make(folder: str, home: str, nonce: str, extract: Mapping[str, Any]) -> bool:
    """Create a part's folder; False if something else is there."""
    make_folders(os.path.dirname(folder))
    try:
        # Fails if this is the run's own folder, which a shared file system does not show us yet.
        os.mkdir(folder)
    except FileExistsError:
        until = time.monotonic() + _MADE_SECONDS
        while True:
            names = os.listdir(folder)
            if MANIFEST_FILE in names:  # whole, since it is renamed to this name
                return _is_of_run(_read(folder), nonce)
            if any(name != "data" and not name.startswith(MANIFEST_FILE) for name in names):
                return False
            if time.monotonic() > until:  # who was making it is gone
                break
            time.sleep(0.02)
    about = manifest.RunJson.of({name: value for name, value in extract.items() if name != "home"})
    about.host = liveness.host_name()
    about.part = {"of": home, "home": (extract.get("home") or {}).get("host", ""), "since": time.time()}
    make_folders(os.path.join(folder, RunFile.KEEPER), inside=folder)
    if extract.get("remote"):
        from rollbook.schema.addresses import begin

        begin(folder, str(extract["remote"]), home=False)  # before the keeper starts, which looks for it
    with manifest.ManifestLock(folder):
        present = _read(folder)
        if present is not None:
            return _is_of_run(present, nonce)
        manifest.write(folder, about)
    return True


def _is_of_run(about: RunJson | None, nonce: str) -> bool:
    return about is not None and about.nonce == nonce


def _add_attempt(folder: str, extract: Mapping[str, Any]) -> None:
    """Add the newest attempt to a part that an earlier attempt created."""
    with manifest.ManifestLock(folder):
        about = manifest.look(folder)
        known = {entry.n for entry in about.attempts}
        news = [entry for entry in manifest.RunJson.of(extract).attempts if entry.n not in known]
        if news and not about.is_empty:
            about.attempts = sorted([*about.attempts, *news], key=lambda entry: entry.n)
            manifest.write(folder, about)
