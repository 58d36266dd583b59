"""ClearML's offline sessions: `offline-<id>.zip`, or the folder, with task.json and events in metrics.jsonl."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from rollbook.formats.importers._archives import UNREADABLE, archives, content, lines
from rollbook.formats.importers._database import damaged
from rollbook.formats.importers._metadata import with_own_names
from rollbook.formats.importers._plain import nested, plain
from rollbook.formats.importers._points import rows_of
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.seeds import named_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_TASK, _EVENTS, _LOG = "task.json", "metrics.jsonl", "log.jsonl"
_NO_STEP = -(2**31)
"""The iteration of a value that was reported once for the whole task."""

_OWN = "General"
"""The section of what was connected without a name; `Args` are those of argparse."""

_MONITOR = ":monitor:"
_OTHER = {"plot": "plots", "training_debug_image": "pictures", "training_stats_vector": "histograms"}


class ClearML:
    """ClearML's offline sessions (`Task.set_offline`): scalars, hyper-parameters, name, project, tags.

    A scalar is `title/series`, `:monitor:gpu` is `system/gpu`. Values of one moment and iteration are one row; a single
    value has no step. Hyper-parameters of a named section are `section.name`.

    Args:
      clock: the clock that ClearML's iterations count.
    """

    name = "clearml"
    what = "ClearML offline session"
    files = (_TASK,)
    looks_into = (".zip",)

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there is such an archive, or its files in a folder."""
        return bool(archives(path, {_TASK, _EVENTS}))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each session; an archive next to its own folder is not read again."""
        found = [one for one in archives(path, {_TASK, _EVENTS}) if not (one.is_file() and _is_unpacked(one))]
        if path.is_file():
            found = [path]
        return with_own_names((run, run.key or "") for run in map(self._run, found))

    def _run(self, archive: Path) -> ForeignRun:
        try:
            about = json.loads(content(archive, _TASK))
            config = _config_of(about)
        except (*UNREADABLE, RecursionError, AttributeError, TypeError):
            return damaged(archive)
        key = str(about.get("id") or archive.stem)
        run = ForeignRun(str(about.get("name") or key), config=config, seed=named_seed(config), key=key)
        run.project, run.notes = str(about.get("project_name") or "") or None, str(about.get("comment") or "")
        run.tags = tuple(map(str, about.get("tags") or ()))
        inside = [file for name in (_EVENTS, _TASK, _LOG) if (file := archive / name).is_file()]
        run.files, run.clocks = [archive] if archive.is_file() else inside, (self._clock,)
        run.rows = functools.partial(self._rows, archive, run)
        return run

    def _rows(self, archive: Path, run: ForeignRun) -> Iterator[Row]:
        run.left_out.clear()
        return rows_of(self._points(archive, run))

    def _points(self, archive: Path, run: ForeignRun) -> Iterator[tuple[float, dict[str, int], str, float]]:
        for event in _events(archive, run):
            kind = event.get("type")
            if kind != "training_stats_scalar":
                run.leave_out(_OTHER.get(str(kind), "other events"))
                continue
            try:
                moment, step, value = float(event["timestamp"]) / 1000, int(event["iter"]), float(event["value"])
                title, series = str(event["metric"]), str(event["variant"])
            except (KeyError, TypeError, ValueError):
                run.lose("scalars that are no numbers")
                continue
            title = f"system/{title.removeprefix(_MONITOR)}" if title.startswith(_MONITOR) else title
            if step == _NO_STEP:
                yield moment, {}, series, value
            else:
                yield moment, {self._clock: step}, f"{title}/{series}", value


def _events(archive: Path, run: ForeignRun) -> Iterator[dict[str, Any]]:
    """The events of all lines, each of which is a list of them."""
    try:
        for line in lines(archive, _EVENTS):
            try:
                events = json.loads(line)
                yield from (dict(event) for event in (events if isinstance(events, list) else [events]))
            except (ValueError, TypeError, RecursionError):
                run.lose("lines that are no list of events")
    except UNREADABLE:
        run.lose("archives that end early or are damaged")


def _config_of(about: dict[str, Any]) -> dict[str, Any]:
    """The hyper-parameters: `net/size` is `size` of `net`."""
    flat: dict[str, Any] = {}
    for section, entries in (about.get("hyperparams") or {}).items():
        for name, entry in entries.items():
            text = str(entry.get("value", ""))
            path = f"{name}" if section in (_OWN, "Args") else f"{section}/{name}"
            flat[path] = text if entry.get("type") == "str" else plain(text)
    return nested(flat)


def _is_unpacked(archive: Path) -> bool:
    return (archive.with_suffix("") / _TASK).is_file() and (archive.with_suffix("") / _EVENTS).is_file()
