"""A run on a host that does not see its folder: the host keeps a part of the run, in a folder of the same identity.

What a pickled run brings along (`page_of`) is enough to make one. The nonce decides what is the same run, not the path:
a folder at another path that holds the run is the run. A part's writers, journal and sealing are those of any run; with
`remote=` its keeper ships it beside the run, without it stays here until `rollbook join` brings it home.
"""

from __future__ import annotations

import os
import tempfile
import time

from rollbook.errors import NewerFormat, NotARun
from rollbook.ground import liveness, manifest
from rollbook.ground.files import exists, make_folders
from rollbook.ground.foreign import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from rollbook.ground.shapes import RunJson

__all__ = ["folder_here", "home_is_here", "page_of"]

_TRAVELS = ("format", "rollbook", "id", "project", "name", "nonce", "created", "clocks", "x", "remote")
_OF_A_LIFE = ("n", "writer", "started", "status", "parent", "cut", "checkpoint")
_MADE_SECONDS = 5.0
"""How long a process that found a folder being made by another waits for its run.json."""


def page_of(about: RunJson, attempt: int) -> dict[str, Any]:
    """What another host has to know of a run to keep a part of it: plain data, a few hundred bytes."""
    entry = manifest.entry_of(about, attempt)
    page: dict[str, object] = {name: value for name, value in about.items() if name in _TRAVELS and value}
    page["attempts"] = [{name: value for name, value in entry.items() if name in _OF_A_LIFE and value is not None}]
    page["home"] = {name: liveness.identity()[name] for name in ("host", "boot_id", "pid_ns")}
    return page


def home_is_here(page: Mapping[str, object]) -> bool:
    """Whether the process that pickled the run was on this host: then its folder is gone, and not somewhere else."""
    home = page.get("home")
    return isinstance(home, dict) and liveness.same_place(home)


def folder_here(folder: str, nonce: str, page: Mapping[str, object]) -> tuple[str, bool]:
    """Where this host's writers of a run write.

    Args:
      folder: the run's folder where it was opened.
      nonce: the run's nonce.
      page: what `page_of` gave there.
    Returns:
      (the folder, whether it is a part that only this host sees).
    Raises:
      NewerFormat: a later rollbook wrote the run that is here. OSError: no folder can be made, neither in this host's
        own root nor in its folder for temporary files.
    """
    raised: OSError | None = None
    for candidate in (folder, *_places(page)):
        about = _read(candidate)
        if about is not None and about.get("nonce") == nonce:
            is_part = bool(about.get("part"))
            if is_part:
                _add_attempt(candidate, page)
            return candidate, is_part
    for candidate in _places(page):
        try:
            if _make(candidate, folder, nonce, page):
                return candidate, bool((_read(candidate) or {}).get("part"))
        except ours(OSError) as err:
            raised = err
    raise raised or OSError(f"no folder for a part of run {page.get('id')} on this host: others are in its place")


def _places(page: Mapping[str, object]) -> Iterator[str]:
    """Where a part may lie: below this host's own root, and where that cannot be, among temporary files."""
    name = f"{page['name']}-{page['id']}"
    yield os.path.join(os.path.abspath(os.environ.get("ROLLBOOK_DIR", "runs")), str(page["project"]), name)
    user = getattr(os, "getuid", lambda: "user")()
    yield os.path.join(tempfile.gettempdir(), f"rollbook-parts-{user}", str(page["project"]), name)


def _read(folder: str) -> RunJson | None:
    try:
        return manifest.read(folder, to_continue=True)
    except NewerFormat:
        raise
    except ours(NotARun, OSError):
        return None


def _make(folder: str, home: str, nonce: str, page: Mapping[str, Any]) -> bool:
    """Make a part's folder; False if something else is there."""
    make_folders(os.path.dirname(folder))
    try:
        # Also where a shared file system has not told us yet of the run's own folder: then this is it, and it fails.
        os.mkdir(folder)
    except FileExistsError:
        until = time.monotonic() + _MADE_SECONDS
        while time.monotonic() < until:
            present = _read(folder)
            if present is not None:
                return present.get("nonce") == nonce
            if exists(os.path.join(folder, "run.json")) or len(os.listdir(folder)) > 1:
                return False
            time.sleep(0.02)
    about = {
        **{name: value for name, value in page.items() if name != "home"},
        "status": "running",
        "ended": None,
        "config": {},
        "summary": {},
        "host": liveness.host_name(),
        "part": {"of": home, "home": (page.get("home") or {}).get("host", ""), "since": time.time()},
    }
    make_folders(os.path.join(folder, "data", "keeper"))
    if page.get("remote"):
        from rollbook.ground.addresses import begin

        begin(folder, str(page["remote"]), home=False)  # before there is a keeper, which looks for it
    with manifest.ManifestLock(folder):
        if _read(folder) is None:
            manifest.write(folder, about)
    return True


def _add_attempt(folder: str, page: Mapping[str, Any]) -> None:
    """A part that was made in an earlier life of the run hears of the newest one."""
    with manifest.ManifestLock(folder):
        about = manifest.look(folder)
        known = {entry["n"] for entry in about.get("attempts", ())}
        news = [entry for entry in page.get("attempts", ()) if entry.get("n") not in known]
        if about and news:
            about["attempts"] = sorted([*about["attempts"], *news], key=lambda entry: int(entry["n"]))
            manifest.write(folder, about)
