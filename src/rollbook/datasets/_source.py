"""Recorded trajectories of a run, one episode and agent at a time, in bounded memory.

    for trajectory in StepSource(book):
        trajectory.columns["obs"], trajectory.columns["reward"], trajectory.last["obs"]

A first pass over two columns finds where each episode's rows lie; a second one reads the row groups that hold them,
keeping a few. So the memory is that of one episode and some row groups, however large the run is.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollbook.book.metrics import chosen, identity
from rollbook.book.pieces import Piece
from rollbook.datasets._cells import Cells, as_space, column_cells, join_cells, leaves_of, tree_of
from rollbook.errors import BadInput
from rollbook.storage.columns import from_numpy, join_tables, to_numpy

if TYPE_CHECKING:
    from rollbook.book.book import Book
    from rollbook.book.history import Attempts

__all__ = ["StepSource", "Trajectory"]

NDArray = npt.NDArray[Any]
_NOT_STEPS = frozenset(("time", "seq", "index", "lane", "writer", "attempt", "scope", "at", "episode_id", "agent", "t"))


@dataclass
class Trajectory:
    """What one agent did in one episode.

    Attributes:
      episode_id, agent: whose; agent is "" where there is only one.
      t: [n] the steps' numbers, and columns: name -> n cells, for the n steps that have an action or a reward.
      last: name -> one cell: the observation after the last step, {} if it was not recorded.
      row: the episode's row in `episodes`, {} if it has none.
      times: [n] unix ns.
    """

    episode_id: str
    agent: str
    t: NDArray
    columns: dict[str, Cells]
    last: dict[str, Any]
    times: NDArray
    row: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.t)

    @property
    def is_whole(self) -> bool:
        """Whether no step is missing: t runs from 0 without a gap."""
        return bool(len(self.t)) and bool(np.array_equal(self.t, np.arange(len(self.t))))

    def column(self, name: str, default: Any) -> Any:
        """n numbers of a column, or `default` n times."""
        cells = self.columns.get(name)
        return np.full(len(self), default) if cells is None else np.asarray(cells)

    def observations(self, space: Any = None) -> Any:
        """All n + 1 observations (n where the last one is not known), as the space has them, else nested by name."""
        leaves = leaves_of(self.columns, "obs")
        ends = leaves_of(self.last, "obs") or leaves_of({k: v[-1] for k, v in self.columns.items()}, "next_obs")
        if ends:
            leaves = {path: join_cells(cells, _one(ends[path])) for path, cells in leaves.items() if path in ends}
        return tree_of(leaves) if space is None else as_space(leaves, space, "observations")

    def next_observations(self, space: Any = None) -> Any:
        """The n observations after each step: as recorded, else each step's successor. One fewer without a last one."""
        leaves = leaves_of(self.columns, "next_obs")
        if not leaves:
            ends = leaves_of(self.last, "obs")
            leaves = {path: cells[1:] for path, cells in leaves_of(self.columns, "obs").items()}
            if ends:
                leaves = {path: join_cells(cells, _one(ends[path])) for path, cells in leaves.items() if path in ends}
        return tree_of(leaves) if space is None else as_space(leaves, space, "next observations")

    def actions(self, space: Any = None) -> Any:
        """The n actions, as the space has them, else nested by name."""
        leaves = leaves_of(self.columns, "action")
        return tree_of(leaves) if space is None else as_space(leaves, space, "actions")


def _one(cell: Any) -> Cells:
    return np.asarray(cell)[None] if isinstance(cell, (np.ndarray, np.generic)) else [cell]


@dataclass(frozen=True, slots=True)
class _Span:
    """Where some consecutive rows of one episode and agent lie."""

    piece: int
    group: int
    start: int
    stop: int


class StepSource:
    """The trajectories of a book.

    Args:
      book: the run.
      episodes: only these ids, in this order; or a function of an episode's row (a dict) that says yes or no; None:
      all. agents: only these; None: all.
      attempts: which lives of the run; see `Book.metrics`.
      cache_bytes: decoded row groups that are kept.
    Raises:
      BadInput: no trajectory was recorded, or none that was asked for.
    """

    def __init__(
        self,
        book: Book,
        *,
        episodes: Sequence[str] | Callable[[dict[str, Any]], bool] | None = None,
        agents: Sequence[str] | None = None,
        attempts: Attempts = "effective",
        cache_bytes: int = 128 * 1024 * 1024,
    ) -> None:
        self.book, self._attempts, self._cache_bytes = book, attempts, cache_bytes
        self._rows = _episode_rows(book, attempts)
        self._pieces: list[Piece] = []
        self._spans: dict[tuple[str, str], list[_Span]] = {}
        self._acting: set[tuple[str, str]] = set()
        self._cache: OrderedDict[tuple[int, int], pa.Table] = OrderedDict()
        self._index()
        self.keys = self._wanted(episodes, agents)
        if not self.keys:
            raise BadInput(
                f"{book.path} holds no trajectory{' of those asked for' if self._spans else ''}: record some with "
                "RecordEpisodes(env, scope, steps='every 10') or TransitionRecorder"
            )

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Trajectory]:
        for key in self.keys:
            trajectory = self._read(key)
            if trajectory is not None:
                yield trajectory

    @property
    def agents(self) -> list[str]:
        """The agents that have trajectories, sorted; [""] where there is only one."""
        return sorted({agent for _, agent in self.keys})

    def space(self, what: str, agent: str = "") -> Any:
        """The space that was written down when the environment was recorded, or None.

        Args:
          what: "observation" or "action".
        """
        from rollbook.capture.episodes.spaces import space_from

        name = f"env/{what}_space" + (f"/{agent}" if agent else "")
        texts = self.book.text(name)
        found = texts["text"].to_pylist() if texts.num_rows else []
        return space_from(found[-1]) if found else None

    def env_id(self) -> str | None:
        """The id of the environment, as it was written down."""
        texts = self.book.text("env/id")
        return str(texts["text"].to_pylist()[-1]) if texts.num_rows else None

    # -- inside

    def _wanted(self, episodes: Any, agents: Sequence[str] | None) -> list[tuple[str, str]]:
        keys = [key for key in self._spans if agents is None or key[1] in agents]
        if episodes is None:
            return keys
        if callable(episodes):
            return [key for key in keys if episodes(self._rows.get(key[0], {}))]
        order = {str(name): place for place, name in enumerate(episodes)}
        return sorted((key for key in keys if key[0] in order), key=lambda key: order[key[0]])

    def _index(self) -> None:
        """Find each episode's rows: two columns of everything, and only where they begin and end is kept."""

        def work(found: dict[str, list[Piece]]) -> None:
            pieces = found["steps"]
            history = self.book.context(pieces, self._attempts).history
            self._pieces, self._spans = list(pieces), {}
            self._cache.clear()
            for number, piece in enumerate(self._pieces):
                for group in _groups(piece):
                    table = piece.read(["episode_id", "agent", "reward", "action", "time", "seq", *_IDENTITY], group)
                    mask = None
                    if not history.chooses_all(self._attempts):
                        mask = chosen(identity(table, piece.meta), history, self._attempts)
                    self._add_spans(table, mask, number, 0 if group is None else group[0])

        self.book.files.read(["steps"], work)
        self._spans = {key: spans for key, spans in self._spans.items() if key in self._acting}

    def _add_spans(self, table: pa.Table, mask: NDArray | None, piece: int, group: int) -> None:
        n = table.num_rows
        if not n or "episode_id" not in table.column_names:
            return
        ids = _codes(table["episode_id"])
        agents = _codes(table["agent"]) if "agent" in table.column_names else (np.zeros(n, np.int64), [""])
        acts = np.zeros(n, dtype=bool)
        for name in ("reward", "action"):
            if name in table.column_names:
                _, valid = to_numpy(table[name]) if not _is_nested(table[name].type) else (None, _valid(table[name]))
                acts |= np.ones(n, dtype=bool) if valid is None else valid
        kept = np.ones(n, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
        change = np.flatnonzero(
            (np.diff(ids[0]) != 0) | (np.diff(agents[0]) != 0) | (np.diff(kept.astype(np.int8)) != 0)
        )
        edges = [0, *(change + 1).tolist(), n]
        for start, stop in pairwise(edges):
            if kept[start]:
                key = (ids[1][ids[0][start]], agents[1][agents[0][start]])
                self._spans.setdefault(key, []).append(_Span(piece, group, start, stop))
                if acts[start:stop].any():
                    self._acting.add(key)

    def _read(self, key: tuple[str, str]) -> Trajectory | None:
        for _ in range(8):
            try:
                tables = [self._group(span.piece, span.group).slice(span.start, span.stop - span.start)
                          for span in self._spans[key]]  # fmt: skip
                return self._assemble(key, tables)
            except FileNotFoundError:  # a part was merged into another one meanwhile
                self._index()
        raise BadInput(f"{self.book.path}: its files are being replaced all the time; export it when it is finished.")

    def _group(self, number: int, group: int) -> pa.Table:
        table = self._cache.get((number, group))
        if table is None:
            piece = self._pieces[number]
            table = piece.read(None, None if piece.part is None else [group])
            fields = piece.meta.get("fields") or {}
            odd = {name for name, more in fields.items() if more.get("rollbook") == "json"}
            table = table.replace_schema_metadata({b"json": "\n".join(sorted(odd)).encode()})
            self._cache[number, group] = table
            while len(self._cache) > 1 and sum(kept.nbytes for kept in self._cache.values()) > self._cache_bytes:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end((number, group))
        return table

    def _assemble(self, key: tuple[str, str], tables: list[pa.Table]) -> Trajectory | None:
        is_json = {name for t in tables for name in (t.schema.metadata or {}).get(b"json", b"").decode().split("\n")}
        table = join_tables([_without_empty(part) for part in tables])
        names = set(table.column_names)
        t = to_numpy(table["t"])[0] if "t" in names else np.arange(table.num_rows)
        steps = np.zeros(table.num_rows, dtype=bool)
        for name in names & {"reward", "terminated"} or {n for n in names if n.partition("/")[0] == "action"}:
            steps |= _valid(table[name])
        if not steps.any():
            return None
        seen = np.zeros(table.num_rows, dtype=bool)
        for name in names:
            if name.partition("/")[0] == "obs":
                seen |= _valid(table[name])
        order = np.argsort(t, kind="stable")
        rows = order[steps[order]]
        rows = rows[np.unique(t[rows], return_index=True)[1]]  # a step that was told twice counts once
        ends = order[seen[order] & ~steps[order] & (t[order] > t[rows[-1]])]
        columns: dict[str, Cells] = {}
        last: dict[str, Any] = {}
        picked = _take(table, rows)
        final = _take(table, ends[:1]) if len(ends) else None
        for name in table.column_names:
            if name in _NOT_STEPS or name.startswith("shape/") or name in self.book.clocks:
                continue
            cells = _cells(picked, name, name in is_json)
            if cells is not None:
                columns[name] = cells
            if final is not None and name.partition("/")[0] == "obs":
                end = _cells(final, name, name in is_json)
                if end is not None:
                    last[name] = end[0]
        times = to_numpy(picked["time"])[0]
        return Trajectory(key[0], key[1], t[rows], columns, last, times, dict(self._rows.get(key[0], {})))


_IDENTITY = ("attempt", "writer", "lane", "scope", "at")


def _episode_rows(book: Book, attempts: Attempts) -> dict[str, dict[str, Any]]:
    """The rows of `episodes`, by id, without what they do not say."""
    found: dict[str, dict[str, Any]] = {}
    for row in book.episodes(attempts).to_pylist():
        found[str(row.get("episode_id"))] = {name: value for name, value in row.items() if value is not None}
    return found


def _groups(piece: Piece) -> list[list[int] | None]:
    return [None] if piece.part is None else [[i] for i in range(len(piece.part.row_groups))]


def _codes(column: pa.ChunkedArray) -> tuple[NDArray, list[str]]:
    """A column of texts as numbers and the texts they stand for; null is ""."""
    words: dict[str, int] = {}
    found: list[NDArray] = []
    for chunk in column.chunks:
        if not pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_encode()
        local = [words.setdefault(str(word), len(words)) for word in chunk.dictionary.to_pylist()]
        codes, valid = to_numpy(chunk.indices)
        none = words.setdefault("", len(words)) if valid is not None else 0
        mapped = np.array([*local, none], dtype=np.int64)
        places = np.asarray(codes, dtype=np.int64)
        found.append(mapped[places if valid is None else np.where(valid, places, len(local))])
    return (np.concatenate(found) if found else np.zeros(0, np.int64)), list(words)


def _is_nested(kind: pa.DataType) -> bool:
    return not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _valid(column: pa.ChunkedArray) -> NDArray:
    if not column.null_count:
        return np.ones(len(column), dtype=bool)
    found: NDArray = to_numpy(column.is_valid())[0]
    return found


def _take(table: pa.Table, rows: NDArray) -> pa.Table:
    return table.take(from_numpy(np.asarray(rows, dtype=np.int64)))


def _without_empty(table: pa.Table) -> pa.Table:
    """Without columns that none of these rows has: they would widen the types of the others."""
    return table.select([name for name in table.column_names if table[name].null_count < table.num_rows])


def _cells(table: pa.Table, name: str, is_json: bool) -> Cells | None:
    """The cells of a column; None where all are null, a list with None where some are."""
    column = table[name]
    if column.null_count == table.num_rows:
        return None
    shapes = table[f"shape/{name}"].to_pylist() if f"shape/{name}" in table.column_names else None
    if not column.null_count:
        return column_cells(column, shapes=shapes, is_json=is_json)
    valid = _valid(column)
    rows = np.flatnonzero(valid)
    there = None if shapes is None else [shapes[i] for i in rows]
    part = column_cells(_take(table.select([name]), rows)[name], shapes=there, is_json=is_json)
    found: list[Any] = [None] * table.num_rows
    for place, cell in zip(rows.tolist(), part, strict=True):
        found[place] = cell.item() if isinstance(cell, np.generic) else cell
    return found
