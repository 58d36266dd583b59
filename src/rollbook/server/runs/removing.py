"""Runs into the bin, and back."""

from __future__ import annotations

from rollbook.errors import RollbookError
from rollbook.runs.removing import binned_below, remove
from rollbook.server.runs.one_run import LeftOut
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import Answer, Ask, plain
from rollbook.server.shared.state import ServerContext


class RemoveAsk(Ask, kw_only=True):
    """Runs to move into the bin beside their project.

    Attributes:
      dry_run: say what would go, and change nothing.
    """

    runs: list[str]
    dry_run: bool = False


class Removed(Answer, kw_only=True):
    """What went into the bin, or would.

    Attributes:
      ids: of the runs; bytes: of all of them. refused: those that stayed, and why.
    """

    ids: list[str]
    bytes: int
    refused: list[LeftOut]


class RestoreAsk(Ask, kw_only=True):
    """Ids of runs in the bins of the folders that the page shows."""

    ids: list[str]


class Restored(Answer, kw_only=True):
    """The runs that are back, and why others are not."""

    ids: list[str]
    refused: list[LeftOut]


def remove_runs(context: ServerContext, ask: RemoveAsk) -> Removed:
    """Move runs into the bin. One that a process writes stays."""
    keys = {row.folder: row.key for row in context.rows(ask.runs)}
    rows = [{**context.row(key).about, "path": folder} for folder, key in keys.items()]
    done = remove(rows, dry_run=ask.dry_run)
    if not ask.dry_run:
        context.catalogue.refresh(full=True)
    return Removed(
        ids=[plain(str(row["id"])) for row in done.moved],
        bytes=sum(int(str(row["bytes"])) for row in done.moved),
        refused=[LeftOut(run=keys.get(path, path), why=str(plain(why))) for path, why in done.refused.items()],
    )


def restore_runs(context: ServerContext, ask: RestoreAsk) -> Restored:
    """Bring runs back from the bin."""
    back: list[str] = []
    refused: list[LeftOut] = []
    holders = {entry.id: (holder, entry.path) for holder, entry in binned_below(context.catalogue.roots)}
    for identity in ask.ids:
        holder, path = holders.get(identity, (None, ""))
        try:
            if holder is None:
                refused.append(LeftOut(run=identity, why="no bin of these folders has it"))
            else:
                holder.restore(path)
                back.append(identity)
        except (RollbookError, OSError) as err:
            refused.append(LeftOut(run=identity, why=str(plain(str(err)))))
    context.catalogue.refresh(full=True)
    return Restored(ids=back, refused=refused)


ENDPOINTS = [
    Endpoint("POST", "/api/remove", RemoveAsk, Removed, remove_runs, "Move runs into the bin", edits=True),
    Endpoint("POST", "/api/restore", RestoreAsk, Restored, restore_runs, "Bring runs back from the bin", edits=True),
]
