"""Checks the bytes of a run in a remote: every piece that its manifests name, as it is there now."""

from __future__ import annotations

import os

from rollbook.errors import Damaged, NewerFormat, NotARun, RemoteUnreachable
from rollbook.remote.commit import NotShipped, RemoteManifest
from rollbook.remote.remote import Remote, perform
from rollbook.remote.steps import Away, Missing, Unknown, message_of
from rollbook.remote.views import check_file, joined_writers, laid_out, run_json_and_manifests
from rollbook.schema.run_files import MANIFEST_FILE, RunFile
from rollbook.system.files import make_folders, pasted

_TRIES = 3


def fetch_checked(remote: Remote, run: str, folder: str) -> list[str]:
    """Download a run into an empty folder; returns what is missing or damaged in the remote, one sentence each.

    Nothing of the cache is used.

    Args:
      run: <project>/<run>.
      folder: gets the files whose bytes are those that the manifests name.
    Raises:
      NotARun: there is no such run. RemoteUnreachable: no answer.
    """
    for _ in range(_TRIES):  # while a run is written, its pieces are replaced
        try:
            run_json, manifests = perform(run_json_and_manifests(f"{run}/"), remote)
        except (Away, Unknown, NotShipped) as err:
            raise RemoteUnreachable(message_of(err, remote.url)) from None
        except (Damaged, NewerFormat) as err:
            return [f"{remote.url}: {err}"]
        if run_json is None:
            raise NotARun(
                f"{remote.url}: there is no run {run!r}. Look what there is with: rollbook ls --dir "
                f"{pasted(remote.url)}"
            )
        problems = _fetch_pieces(remote, run, folder, manifests)
        _write(folder, f"data/{RunFile.WRITERS}", joined_writers(remote, run, manifests))
        _write(folder, MANIFEST_FILE, run_json.data)
        if not any("is missing" in problem for problem in problems):
            break
    return problems


def _fetch_pieces(remote: Remote, run: str, folder: str, manifests: dict[str, RemoteManifest]) -> list[str]:
    """What is wrong with the pieces; those that are whole are in the folder afterwards."""
    wanted = {(entry[0], path): entry for path, entry in laid_out(manifests).items()}
    shown = {piece for piece, _ in wanted}
    for manifest in manifests.values():
        for path, file in manifest.files.items():
            if file.piece not in shown:  # another folder's file of that name is shown
                entry = (file.piece, file.size, file.footer, file.sha256, file.coding, file.stored)
                wanted[file.piece, f".others/{path}"] = entry
    problems = []
    for (piece, path), entry in wanted.items():
        target = _made(folder, path)
        if os.path.exists(target):
            continue
        where, held = f"{remote.url}/{run}/{piece}", path.removeprefix(".others/")
        try:
            remote.get(f"{run}/{piece}", f"{target}.tmp")
            check_file(f"{target}.tmp", entry)
            os.replace(f"{target}.tmp", target)
        except Missing:
            problems.append(f"{where} is missing; it holds {held}")
        except Damaged:
            problems.append(f"{where} is damaged (its checksum differs); it holds {held}")
        except (Away, Unknown) as err:
            raise RemoteUnreachable(message_of(err, remote.url)) from None
    return problems


def _write(folder: str, path: str, data: bytes | None) -> None:
    if data is not None:
        with open(_made(folder, path), "wb") as file:
            file.write(data)


def _made(folder: str, path: str) -> str:
    """The path of a file in the folder, whose folders exist."""
    target = os.path.join(folder, *path.split("/"))
    make_folders(os.path.dirname(target), inside=folder)
    return target
