"""Trajectories as plain JSON lines, readable in any language; "….gz" is compressed.

    {"rollbook": "steps", "version": 1, "env_id": "CartPole-v1", "spaces": {...}}
    {"episode": "3f.0.7", "agent": "", "row": {"return": 21.0, ...}, "types": {"obs": ["float32", [4]], ...}}
    {"t": 0, "obs": [0.1, 0.2, 0.0, 0.3], "action": 1, "reward": 1.0, "terminated": false, "truncated": false}
    {"t": 1, "obs": [...]}                       the observation after the last step has a line of its own

One line per step, strict JSON. NaN and infinities are the texts "nan", "inf", "-inf" (converted back in columns of
numbers); bytes are {"base64": "..."}. Types are numpy's names, so that nothing is lost on the way back.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import IO, Any

import numpy as np

from rollbook.errors import Damaged, NewerFormat
from rollbook.formats.datasets._cells import stacked
from rollbook.formats.datasets._groups import RowGroup, StepRows
from rollbook.formats.datasets._replay import Replay
from rollbook.formats.datasets._source import Key, StepSource, Trajectory
from rollbook.formats.datasets._whole import Exported
from rollbook.system.files import replacing
from rollbook.system.tuning import TUNING
from rollbook.values.spaces import describe, space_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book
    from rollbook.protocols import Recorder

VERSION = 1
_ROW = ("return", "length", "terminated", "truncated", "complete", "seed", "env_index", "options")


def to_jsonl(
    book: Book,
    path: str | os.PathLike[str],
    *,
    episodes: Sequence[str] | Callable[[dict[str, Any]], bool] | None = None,
    agents: Sequence[str] | None = None,
) -> Exported:
    """Write the trajectories of a run as JSON lines, including unfinished ones.

    Args:
      book: the run.
      path: the file; replaced when all is written, so a partial file is never visible.
      episodes: ids, or a function of an episode's row; None: all that have trajectories.
      agents: only these.
    Raises:
      BadInput: nothing to write.
    """
    source = StepSource(book, episodes=episodes, agents=agents)
    exported = Exported(paths=(os.fspath(path),))
    with replacing(path) as temporary, _open(temporary, "wt", os.fspath(path).endswith(".gz")) as file:
        spaces: dict[str, object] = {}
        for agent in source.agents:
            for what in ("observation", "action"):
                space = source.space(what, agent)
                text = describe(space) if space is not None else ""
                if text:
                    spaces[f"{what}/{agent}" if agent else what] = json.loads(text)
        _line(file, {"rollbook": "steps", "version": VERSION, "env_id": source.env_id(), "spaces": spaces})
        ahead = _Ahead()
        for key, group, steps in source.located():
            exported.episodes += 1
            lines = ahead.episode(key, group, steps, source.row)
            if lines is not None:
                file.write(lines)
                exported.steps += steps.stop - steps.start
                exported.with_gaps += group.t[steps.start] != 0
            else:
                trajectory = source.cut(key, group, steps)
                _write(file, trajectory)
                exported.steps += len(trajectory)
                exported.with_gaps += not trajectory.is_whole
    return exported


class _Ahead:
    """The lines of many episodes' steps at once, if the episodes are consecutive and all their values are numbers.

    The prepared part is as long as the episode if episodes are read in another order. It grows while each one begins
    where the last one ended.
    """

    def __init__(self) -> None:
        self._group: RowGroup | None = None
        self._start = self._stop = self._after = 0
        self._texts: dict[str, list[str | None] | None] = {}
        self._lines: dict[tuple[str, ...], list[str]] = {}

    def episode(
        self, key: Key, group: RowGroup, steps: StepRows, row_of: Callable[[str], dict[str, Any]]
    ) -> str | None:
        """All lines of an episode; None if they must be made from its own cells."""
        start, stop, end = steps.start, steps.stop, steps.end
        if steps.rows is not None:
            return None
        names: list[str] = []
        for name, column in group.columns.items():
            count = column.count(start, stop)
            if count == stop - start:
                names.append(name)
            elif count:
                return None
        if group is not self._group or not self._start <= start < stop <= self._stop:
            self._move(group, start, stop)
        lines = self._lines_of(group, ("t", *names))
        if lines is None:
            return None
        self._after = stop + (end is not None)
        cells = [(name, group.columns[name].cells) for name in names]
        types = _types_of(tuple([(name, array.dtype, array.shape[1:]) for name, array in cells]))  # type: ignore[union-attr]
        head = (
            f'{{"episode": {_encoded(key[0])}, "agent": {_encoded(key[1])}, '
            f'"row": {_row_text(row_of(key[0]))}, "types": {types}}}\n'
        )
        last = ""
        if end is not None:
            t = int(group.t[stop - 1]) + 1
            parts = [
                f", {_encoded(name)}: {_cell_text(column.one(end))}"
                for name, column in group.observed
                if column.is_there(end)
            ]
            last = f'{{"t": {t}{"".join(parts)}}}\n' if parts else ""
        return "".join([head, *lines[start - self._start : stop - self._start], last])

    def _move(self, group: RowGroup, start: int, stop: int) -> None:
        follows = group is self._group and start == self._after
        rows = min(2 * (self._stop - self._start), TUNING.rows_ahead) if follows else 0
        self._group, self._start = group, start
        self._stop = min(max(stop, start + rows), len(group))
        self._texts, self._lines = {}, {}

    def _lines_of(self, group: RowGroup, names: tuple[str, ...]) -> list[str] | None:
        lines = self._lines.get(names)
        if lines is None:
            texts = [self._texts_of(group, name) for name in names]
            if any(text is None for text in texts):
                return None
            line = _line_of(names)
            lines = self._lines[names] = [line % row for row in zip(*texts, strict=True)]
        return lines

    def _texts_of(self, group: RowGroup, name: str) -> list[str | None] | None:
        """The JSON of each cell; None if it depends on which cells are converted together."""
        if name not in self._texts:
            self._texts[name] = None
            cells = group.t if name == "t" else group.columns[name].cells
            if isinstance(cells, np.ndarray) and cells.ndim < 3 and cells.dtype.kind in "biuf" and cells.size:
                part = cells[self._start : self._stop]
                if cells.dtype.kind != "f" or np.isfinite(part).all():
                    self._texts[name] = _texts(part)
        return self._texts[name]


def _write(file: IO[str], trajectory: Trajectory) -> None:
    arrays = ((name, cells) for name, cells in trajectory.columns.items() if isinstance(cells, np.ndarray))
    types = _types_of(tuple((name, cells.dtype, cells.shape[1:]) for name, cells in arrays))
    row_text = _row_text(trajectory.row)
    episode, agent = _encoded(trajectory.episode_id), _encoded(trajectory.agent)
    file.write(f'{{"episode": {episode}, "agent": {agent}, "row": {row_text}, "types": {types}}}\n')
    names = ("t", *trajectory.columns)
    texts: list[list[str | None]] = [_texts(trajectory.t), *map(_texts, trajectory.columns.values())]
    if all(None not in cells for cells in texts):
        line = _line_of(names)
        file.write("".join([line % cells for cells in zip(*texts, strict=True)]))
    else:
        for row in zip(*texts, strict=True):
            there = [f"{_encoded(name)}: {cell}" for name, cell in zip(names, row, strict=True) if cell is not None]
            file.write("{" + ", ".join(there) + "}\n")
    if trajectory.last:
        _line(file, {"t": int(trajectory.t[-1]) + 1 if len(trajectory) else 0, **trajectory.last})


def _row_text(row: dict[str, object]) -> str:
    return _encoded({name: row[name] for name in _ROW if name in row})


def _cell_text(cell: object) -> str:
    """The JSON of one cell; for lists of finite numbers it equals Python's repr."""
    if isinstance(cell, np.ndarray) and cell.dtype.kind in "iuf":
        text = str(cell.tolist())
        if "n" not in text:
            return text
    return _encoded(cell)


@lru_cache(maxsize=64)
def _types_of(kinds: tuple[tuple[str, Any, tuple[int, ...]], ...]) -> str:
    """The JSON of the types of columns; cached, because most episodes have the same."""
    return _encoded({name: [dtype.name, list(shape)] for name, dtype, shape in kinds})


@lru_cache(maxsize=64)
def _line_of(names: tuple[str, ...]) -> str:
    """A line with a %s for each value."""
    return "{" + ", ".join(f"{_encoded(name).replace('%', '%%')}: %s" for name in names) + "}\n"


def _texts(cells: Any) -> list[str | None]:
    """The JSON of each cell; None where it is missing. Numbers are written as one text, which is then split.

    A float32 has nine digits, enough to identify it.
    """
    if isinstance(cells, np.ndarray) and cells.size and cells.ndim < 3:
        kind = cells.dtype.kind
        if kind == "b" and cells.ndim == 1:
            return ["true" if cell else "false" for cell in cells.tolist()]
        if kind in "iuf":
            number = "%.9g" if kind == "f" and cells.itemsize <= 4 else "%r"
            cell = number if cells.ndim == 1 else f"[{', '.join([number] * cells.shape[1])}]"
            text = f"{cell}\n" * len(cells) % tuple(cells.reshape(-1).tolist())
            if "n" not in text:  # no nan or inf
                return text.splitlines()  # type: ignore[return-value]
    return [None if cell is None else _encoded(cell) for cell in cells]


def from_jsonl(path: str | os.PathLike[str], recorder: Recorder) -> Exported:
    """Write a file of `to_jsonl` into a run, one episode in memory at a time.

    Args:
      path: the file; one that ends with ".gz" is decompressed.
      recorder: the run or the scope that gets the episodes.
    Raises:
      Damaged: an invalid line, or one in the wrong place; earlier lines are already written.
      NewerFormat: a later version.
    """
    replay = Replay(recorder)
    for trajectory in _read(path, replay):
        replay.add(trajectory)
    replay.finish()
    return Exported(replay.episodes, replay.steps)


def _read(path: str | os.PathLike[str], replay: Replay) -> Iterator[Trajectory]:
    name = os.fspath(path)
    head: dict[str, object] | None = None
    lines: list[dict[str, object]] = []
    with _open(name, "rt", name.endswith(".gz")) as file:
        for number, text in enumerate(file, 1):
            ready = None
            try:
                line = json.loads(text)
                if number == 1:
                    _check_first(line, name, replay)
                elif "episode" in line:
                    ready = None if head is None else _trajectory(head, lines)
                    head, lines = line, []
                elif head is not None and type(line["t"]) is int:
                    lines.append(line)
                else:
                    raise KeyError("a step before any episode")
            except (ValueError, KeyError, TypeError, AttributeError) as err:
                raise Damaged(f"{name}, line {number}: {text[:80]!r} makes no sense there ({err})") from None
            if ready is not None:
                yield ready
    if head is not None:
        try:
            ready = _trajectory(head, lines)
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            raise Damaged(f"{name}: episode {head['episode']!r} is not what its types say ({err})") from None
        yield ready


def _check_first(line: dict[str, Any], path: str, replay: Replay) -> None:
    if line["rollbook"] != "steps":
        raise KeyError("not a file of steps")
    if line["version"] > VERSION:
        raise NewerFormat(f"{path} has version {line['version']}; this rollbook reads up to {VERSION}. Upgrade.")
    spaces = line.get("spaces") or {}
    agents = {name.partition("/")[2] for name in spaces}
    for agent in sorted(agents):
        end = f"/{agent}" if agent else ""
        declared = [spaces.get(f"{what}{end}") for what in ("observation", "action")]
        observation, action = (None if space is None else space_from(json.dumps(space)) for space in declared)
        replay.spaces(observation, action, agent, line.get("env_id"))


def _trajectory(head: dict[str, Any], lines: list[dict[str, object]]) -> Trajectory:
    steps = [line for line in lines if "reward" in line or "terminated" in line or _acts(line)]
    ends = [line for line in lines if not ("reward" in line or "terminated" in line or _acts(line))]
    types = head.get("types") or {}
    names = dict.fromkeys(name for line in steps for name in line if name != "t")
    columns: dict[str, Any] = {}
    for name in names:
        cells = [_unjson(line.get(name)) for line in steps]
        columns[name] = _typed(cells, types[name]) if name in types else cells
    last: dict[str, Any] = {}
    for name, cell in (ends[-1] if ends else {}).items():
        if name != "t":
            last[name] = _typed([_unjson(cell)], types[name])[0] if name in types else _unjson(cell)
    t = np.array([line["t"] for line in steps], dtype=np.int64)
    row = head.get("row") or {}
    return Trajectory(
        str(head["episode"]), str(head.get("agent") or ""), t, columns, last, np.zeros(len(t), dtype=np.int64), row
    )


def _acts(line: dict[str, object]) -> bool:
    return any(name.partition("/")[0] == "action" for name in line)


def _typed(cells: list[object], kind: Any) -> Any:
    dtype = np.dtype(str(kind[0]))
    if dtype.kind not in "biuf":
        return stacked(cells)
    return np.array(_numbers(cells) if dtype.kind == "f" else cells, dtype=dtype).reshape(len(cells), *kind[1])


def _numbers(cells: object) -> Any:
    """ "nan", "inf" and "-inf" as the numbers they stand for."""
    if isinstance(cells, list):
        return [_numbers(cell) for cell in cells]
    return float(cells) if isinstance(cells, str) else cells


def _json(value: object) -> object:
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {str(name): _json(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(part) for part in value]
    return value


def _unjson(value: object) -> Any:
    if isinstance(value, dict) and set(value) == {"base64"}:
        return base64.b64decode(value["base64"])
    return value


def _encoded(content: object) -> str:
    """The JSON of content that rarely holds NaN or bytes, which JSON cannot represent."""
    try:
        return _encode(content)
    except (TypeError, ValueError):
        return _encode(_json(content))


def _of_numpy(value: object) -> object:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError


_encode = json.JSONEncoder(allow_nan=False, default=_of_numpy).encode


def _line(file: IO[str], content: dict[str, object]) -> None:
    file.write(_encoded(content) + "\n")


@contextmanager
def _open(path: str, mode: str, compressed: bool) -> Iterator[IO[str]]:
    if compressed:
        with gzip.open(path, mode, encoding="utf-8", newline="\n", compresslevel=6 if "w" in mode else 9) as file:
            yield file  # type: ignore[misc]
    else:
        with open(path, mode, encoding="utf-8", newline="\n") as file:
            yield file
