"""Changes: tags, notes, names, groups, archived runs. Only run.json is changed."""

from __future__ import annotations

from rollbook.errors import BadInput, RollbookError
from rollbook.ground import manifest
from rollbook.server.catalogue import RunRow
from rollbook.server.endpoint import Endpoint
from rollbook.server.refusals import Refused
from rollbook.server.schemas.edits import EditAnswer, EditAsk, LeftOut
from rollbook.server.shared_state import Hall
from rollbook.server.table_rows import table_row

__all__ = ["ENDPOINTS"]

ARCHIVED = "archived"
"""The tag of an archived run."""

_LONGEST = {"name": 200, "notes": 20_000, "group": 200}
_MOST_TAGS, _LONGEST_TAG = 100, 100


def edit(hall: Hall, ask: EditAsk) -> EditAnswer:
    """Change the manifests of some runs. Those that cannot be changed are named; the others are changed."""
    _check(ask)
    rows = hall.rows(ask.runs)
    refused: list[LeftOut] = []
    for row in rows:
        try:
            _edit_one(row, ask)
        except (RollbookError, OSError) as err:
            refused.append(LeftOut(run=row.key, why=str(err)))
    hall.catalogue.refresh(full=True)
    known = hall.catalogue.snapshot(60.0).rows
    return EditAnswer(
        runs=[table_row(known[row.key], [], hall.facts.known(known[row.key])) for row in rows if row.key in known],
        refused=refused,
    )


def _edit_one(row: RunRow, ask: EditAsk) -> None:
    changed: dict[str, object] = {}
    tags = [str(tag) for tag in manifest.read(row.folder)["tags"]]
    said = ask.set
    if said is not None:
        changed = {name: value for name in ("name", "notes", "group") if (value := getattr(said, name)) is not None}
        if changed.get("group") == "":
            changed["group"] = None
        if said.tags is not None:
            tags = [*said.tags, *([ARCHIVED] if ARCHIVED in tags and said.archived is None else [])]
        if said.archived is not None:
            tags = [tag for tag in tags if tag != ARCHIVED] + ([ARCHIVED] if said.archived else [])
    tags = [tag for tag in [*tags, *ask.add_tags] if tag not in ask.remove_tags]
    manifest.edit(row.folder, {**changed, "tags": list(dict.fromkeys(tags))})


def _check(ask: EditAsk) -> None:
    if ask.set is None and not ask.add_tags and not ask.remove_tags:
        raise BadInput("nothing to change: say set, add_tags or remove_tags")
    for tag in [*((ask.set.tags if ask.set else None) or ()), *ask.add_tags]:
        if not tag.strip() or len(tag) > _LONGEST_TAG or not tag.isprintable():
            raise BadInput(f"the tag {tag!r:.60} cannot be a tag: a tag has 1 to {_LONGEST_TAG} printable characters")
    if len((ask.set.tags if ask.set else None) or ()) + len(ask.add_tags) > _MOST_TAGS:
        raise Refused("too_large", f"at most {_MOST_TAGS} tags a run")
    for name, most in _LONGEST.items():
        value = getattr(ask.set, name) if ask.set is not None else None
        if value is None:
            continue
        if len(value) > most:
            raise Refused("too_large", f"{name} has {len(value):,} characters; at most {most:,}")
        if name != "notes" and not value.isprintable():
            raise BadInput(f"{name}={value!r:.60} holds characters that cannot be shown")
        if name == "name" and not value.strip():
            raise BadInput("a run's name is not empty")


ENDPOINTS = [Endpoint("POST", "/api/edit", EditAsk, EditAnswer, edit, "Change tags, notes, names; archive", edits=True)]
