"""Labels that a person gives to runs of other tools on the page, stored next to them in `rollbook.labels`."""

from __future__ import annotations

import os
from pathlib import Path

from rollbook.errors import BadInput
from rollbook.formats.foreign import is_laid_out
from rollbook.formats.importers import LABELS_FILE, field_of, label, labels_of
from rollbook.schema import manifest
from rollbook.server.runs.one_run import LeftOut
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import Answer, Ask, Refused, plain
from rollbook.server.shared.state import ServerContext

_LONGEST = 200
_OWN = ("algo", "env", "seed", "group")


class LabelAsk(Ask, kw_only=True):
    """Labels for some runs.

    Attributes:
      fields: name -> text: algo, env, seed, group; any other name is a setting of the configuration. "" removes the
        label.
    """

    runs: list[str]
    fields: dict[str, str]


class LabelAnswer(Answer, kw_only=True):
    """What was written.

    Attributes:
      files: the files with labels; labelled: how many runs they are about.
      refused: the runs that cannot be labelled, and why.
    """

    files: list[str]
    labelled: int
    refused: list[LeftOut]


def label_runs(context: ServerContext, ask: LabelAsk) -> LabelAnswer:
    """Write labels of runs of other tools to a file next to them."""
    fields = dict(_field(name, text) for name, text in ask.fields.items())
    if not fields:
        raise BadInput("no field to say.", "Name algo, env, seed, group, or a setting")
    files: dict[str, None] = {}
    refused: list[LeftOut] = []
    paths = {}
    for row in context.rows(ask.runs):
        if (path := _path_of(row)) is None:
            why = "it is a run of rollbook: its own record says what it is. Its group can be changed"
            refused.append(LeftOut(run=row.key, why=why))
        else:
            paths[row.key] = path
    above = os.path.commonpath([os.path.dirname(path) for path in paths.values()]) if paths else ""
    for run, path in paths.items():
        try:
            files[label(path, fields, folder=above)[0]] = None
            if _differs(path, fields):  # a file nearer to the run says something else
                files[label(path, fields)[0]] = None
        except OSError as err:
            raise Refused("unreadable", f"{LABELS_FILE} cannot be written: {err.strerror or err}") from None
        if _differs(path, fields):
            why = f"another line of {LABELS_FILE} says it; change it there"
            refused.append(LeftOut(run=run, why=why))
    return LabelAnswer(files=[plain(file) for file in files], labelled=len(paths), refused=refused)


def _path_of(row: RunRow) -> str | None:
    """The file or folder of a run of another tool that labels are about; None for a run of rollbook."""
    imported = manifest.look(row.folder).imported if is_laid_out(row.folder) else None
    path = imported.get("place") if imported else None
    return path if isinstance(path, str) and os.path.isabs(path) else None


def _field(name: str, text: str) -> tuple[str, object]:
    name, text = name.strip(), text.strip()
    if not (name + text).isprintable() or len(name) > _LONGEST or len(text) > _LONGEST or not name.split() == [name]:
        raise BadInput(f"label {name!r:.60}: a name has no spaces, and a name and its text have up to {_LONGEST} signs")
    full = name if name in _OWN or name.startswith("config.") else f"config.{name}"
    return field_of(f"{full}={text}") if text else (field_of(f"{full}=0")[0], None)


def _differs(path: str, fields: dict[str, object]) -> bool:
    """Whether the labels of a path say something else."""
    own_labels = labels_of(Path(path))
    return any(own_labels.get(name, (None, ""))[0] != value for name, value in fields.items())


ENDPOINTS = [
    Endpoint("POST", "/api/label", LabelAsk, LabelAnswer, label_runs, "Say what runs of other tools are", edits=True),
]
