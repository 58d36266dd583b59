"""Recorded trajectories of a run, one episode and agent at a time, in bounded memory.

    for trajectory in StepSource(book):
        trajectory.columns["obs"], trajectory.columns["reward"], trajectory.last["obs"]

A first pass over some columns finds the rows of each episode; a second one reads the row groups that hold them and
keeps a few. So memory is bounded by one episode and some row groups, for any size of the run. Work such as decoding
and looking for gaps is done once per row group; an episode is then a slice of each column.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.errors import BadInput, Damaged, RollbookWarning
from rollbook.formats.datasets._cells import Cells, as_space, is_ragged, join_cells, leaves_of, one_row, tree_of
from rollbook.formats.datasets._groups import RowGroup, StepRows, cut, joined, words_of
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import to_numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book
    from rollbook.schema.manifest import Attempts

_IDENTITY = ("attempt", "writer", "lane", "scope", "at")
_INDEXED = ["episode_id", "agent", "reward", "action", "time", "seq", *_IDENTITY]


class Trajectory:
    """The steps of one agent in one episode. Made by `StepSource`.

    Attributes:
      episode_id, agent: of the trajectory; agent is "" if there is only one.
      t: [n] the steps' numbers.
      columns: name -> n cells, for the n steps that have an action or a reward.
      last: name -> one cell: the observation after the last step, {} if it was not recorded.
      times: [n] unix ns.
      row: the episode's row in `episodes`, {} if it has none; created on access.
    """

    __slots__ = ("_is_whole", "_row", "agent", "columns", "episode_id", "last", "t", "times")

    def __init__(
        self,
        episode_id: str,
        agent: str,
        t: NDArray,
        columns: dict[str, Cells],
        last: dict[str, Any],
        times: NDArray,
        row: dict[str, Any] | Callable[[], dict[str, Any]],
        is_whole: bool | None = None,
    ) -> None:
        self.episode_id, self.agent, self.t, self.columns = episode_id, agent, t, columns
        self.last, self.times = last, times
        self._row, self._is_whole = row, is_whole

    def __len__(self) -> int:
        return len(self.t)

    @property
    def row(self) -> dict[str, Any]:
        if callable(self._row):
            self._row = self._row()
        return self._row

    @property
    def is_whole(self) -> bool:
        """Whether no step is missing: t runs from 0 without a gap."""
        if self._is_whole is None:
            n = len(self.t)
            self._is_whole = n > 0 and self.t[0] == 0 and self.t[-1] == n - 1 and bool((self.t[1:] > self.t[:-1]).all())
        return bool(self._is_whole)

    def with_columns(self, columns: dict[str, Cells]) -> Trajectory:
        """The same steps with other columns."""
        return Trajectory(
            self.episode_id, self.agent, self.t, columns, self.last, self.times, self._row, self._is_whole
        )

    def column(self, name: str, default: object) -> Any:
        """The numbers of a column, one for each step.

        Args:
          name: its name.
          default: what each step gets if there is no such column.
        """
        cells = self.columns.get(name)
        if cells is None:
            return np.full(len(self), default)
        return cells if isinstance(cells, np.ndarray) else np.asarray(cells)

    def observations(self, space: object = None) -> Any:
        """All n + 1 observations (n if the last is not known), in the structure of the space, else nested by name.

        Args:
          space: a gymnasium space. None: nested by name.
        """
        leaves = leaves_of(self.columns, "obs")
        ends = leaves_of(self.last, "obs") or leaves_of({k: v[-1] for k, v in self.columns.items()}, "next_obs")
        if ends:
            leaves = _with_end(leaves, ends, len(self), space)
        return tree_of(leaves) if space is None else as_space(leaves, space, "observations")

    def next_observations(self, space: object = None) -> Any:
        """The n observations after each step: as recorded, else those of the next step (one fewer without a last).

        Args:
          space: a gymnasium space. None: nested by name.
        """
        leaves = leaves_of(self.columns, "next_obs")
        if not leaves:
            ends = leaves_of(self.last, "obs")
            leaves = {path: cells[1:] for path, cells in leaves_of(self.columns, "obs").items()}
            if ends:
                leaves = _with_end(leaves, ends, len(self) - 1, space)
        return tree_of(leaves) if space is None else as_space(leaves, space, "next observations")

    def actions(self, space: object = None) -> Any:
        """The n actions, in the structure of the space, else nested by name.

        Args:
          space: a gymnasium space. None: nested by name.
        """
        leaves = leaves_of(self.columns, "action")
        return tree_of(leaves) if space is None else as_space(leaves, space, "actions")


def _with_end(leaves: dict[str, Any], ends: dict[str, Any], n: int, space: object) -> dict[str, object]:
    """The n cells of each leaf and its last one. A leaf without a last one is left out, unless its parts may vary."""
    if space is None or not is_ragged(space):
        return {path: join_cells(cells, one_row(ends[path])) for path, cells in leaves.items() if path in ends}
    return {path: [*leaves.get(path, [None] * n), ends.get(path)] for path in dict.fromkeys([*leaves, *ends])}


class StepSource:
    """The trajectories of a book.

    Args:
      book: the run.
      episodes: only these ids, in this order; or a function of an episode's row (a dict) that returns whether to
        include it; None: all. An unfinished episode has no row yet: the function gets its `episode_id`, its `scope` and
        `complete` = False. If it reads other fields, the episode is left out.
      agents: only these; None: all.
      attempts: which attempts of the run; see `Book.metrics`.
      cache_bytes: size of the cache of decoded row groups.
    Raises:
      BadInput: no trajectory was recorded, or none that was requested.
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
        self.book, self._cache_bytes = book, cache_bytes
        self._rows = _EpisodeRows(book.episodes(attempts=attempts))
        self._row_groups = book.row_groups("steps", attempts)
        self._spans: dict[tuple[str, str], list[_Span]] = {}
        self._acting: set[tuple[str, str]] = set()
        self._orders: dict[tuple[int, int], NDArray] = {}
        self._scopes: dict[str, str] = {}
        self._cache: OrderedDict[tuple[int, int], RowGroup] = OrderedDict()
        self._index()
        self.keys = self._wanted(episodes, agents)
        if not self.keys:
            self._warn()
            raise BadInput(
                f"{book.path} holds no trajectory{' of those asked for' if self._spans else ''}: record some with "
                "RecordEpisodes(env, scope, steps='every 10') or TransitionRecorder"
            )

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Trajectory]:
        for key, group, steps in self.located():
            yield self.cut(key, group, steps)

    def located(self) -> Iterator[tuple[Key, RowGroup, StepRows]]:
        """The key and location of each trajectory in order, for work that is done once per group."""
        for key in self.keys:
            try:
                where = self._find(key)
            except Damaged:
                continue
            if where is not None:
                yield key, *where
        self._warn()

    def _warn(self) -> None:
        """Report rows that were left out because files are damaged."""
        for path, episodes in self._row_groups.damaged.items():
            lost = f"{episodes} trajectories" if episodes else "steps"
            warnings.warn(
                f"{path} is damaged: {lost} of it were left out. `rollbook verify` names what is damaged",
                RollbookWarning,
                stacklevel=3,
            )
        self._row_groups.damaged.clear()

    def row(self, episode_id: str) -> dict[str, Any]:
        """The episode's row in `episodes`, {} if it has none.

        Args:
          episode_id: its id.
        """
        return self._rows.get(episode_id)

    @property
    def agents(self) -> list[str]:
        """The agents that have trajectories, sorted; [""] if there is only one."""
        return sorted({agent for _, agent in self.keys})

    def space(self, what: str, agent: str = "") -> Any:
        """The space that was stored when the environment was recorded, or None.

        Args:
          what: "observation" or "action".
          agent: its name; "" for the only one.
        """
        from rollbook.values.spaces import space_from

        name = f"env/{what}_space" + (f"/{agent}" if agent else "")
        texts = self.book.text(name)
        spaces = texts["text"].to_pylist() if texts.num_rows else []
        return space_from(spaces[-1]) if spaces else None

    def env_id(self) -> str | None:
        """The recorded id of the environment."""
        texts = self.book.text("env/id")
        return str(texts["text"].to_pylist()[-1]) if texts.num_rows else None

    # -- inside

    def _wanted(self, episodes: Any, agents: Sequence[str] | None) -> list[tuple[str, str]]:
        keys = [key for key in self._spans if agents is None or key[1] in agents]
        if episodes is None:
            return keys
        if callable(episodes):
            is_chosen = {key: self._is_chosen(key[0], episodes) for key in keys}
            return [key for key in keys if is_chosen[key]]
        order = {str(name): index for index, name in enumerate(episodes)}
        return sorted((key for key in keys if key[0] in order), key=lambda key: order[key[0]])

    def _is_chosen(self, episode_id: str, says: Callable[[dict[str, Any]], bool]) -> bool:
        row = self._rows.get(episode_id)
        if row:
            return bool(says(row))
        try:
            return bool(says({"episode_id": episode_id, "scope": self._scopes.get(episode_id, ""), "complete": False}))
        except (KeyError, TypeError):  # it reads fields that exist only at the end
            return False

    def _index(self) -> None:
        """Find each episode's rows: reads some columns of all rows, and only keeps where episodes begin and end."""

        def start() -> Callable[..., None]:
            self._spans = {}
            self._orders.clear()
            self._cache.clear()
            return self._add_spans

        self._row_groups.scan(_INDEXED, start)
        self._spans = {key: spans for key, spans in self._spans.items() if key in self._acting}

    def _add_spans(self, row_group: tuple[int, int], table: pa.Table, mask: NDArray | None, scope: str) -> None:
        """Store the rows of each episode and agent in a row group as a contiguous range.

        If episodes are interleaved (several environments at once), the group is read in an order that puts the rows of
        each together.
        """
        n = table.num_rows
        if not n or "episode_id" not in table.column_names:
            return
        ids, id_words = words_of(table["episode_id"])
        agents, agent_words = words_of(table["agent"]) if "agent" in table.column_names else (None, [""])
        acts = np.zeros(n, dtype=bool)
        for name in ("reward", "action"):
            if name in table.column_names:
                acts |= _acts(table[name])
        keys = ids if agents is None else ids * len(agent_words) + agents
        order = None
        if mask is not None:
            chosen = np.flatnonzero(mask)
            if len(chosen) != n:
                keys, acts, order = keys[chosen], acts[chosen], chosen
        edges = _edges(keys)
        if len(edges) - 1 != len(np.unique(keys)):
            together = np.argsort(keys, kind="stable")
            keys, acts, order = keys[together], acts[together], together if order is None else order[together]
            edges = _edges(keys)
        if order is not None:
            self._orders[row_group] = order
        if not len(keys):
            return
        acting = np.logical_or.reduceat(acts, edges[:-1]).tolist()
        firsts = keys[edges[:-1]].tolist()
        scopes = _scopes(table, scope)
        for nth, (start, stop) in enumerate(pairwise(edges.tolist())):
            episode, agent = divmod(firsts[nth], len(agent_words)) if agents is not None else (firsts[nth], 0)
            key = (id_words[episode], agent_words[agent])
            self._spans.setdefault(key, []).append((*row_group, start, stop))
            if acting[nth]:
                self._acting.add(key)
            if key[0] not in self._rows:
                self._scopes[key[0]] = scopes(start if order is None else int(order[start]))

    def _find(self, key: Key) -> tuple[RowGroup, StepRows] | None:
        for _ in range(8):
            try:
                return self._locate(self._spans[key])
            except FileNotFoundError:  # a part was merged into another one in the meantime
                self._index()
        raise BadInput(f"{self.book.path}: its files are being replaced all the time; export it when it is finished.")

    def _group(self, number: int, group: int) -> RowGroup:
        cells = self._cache.get((number, group))
        if cells is None:
            table, odd = self._row_groups.read((number, group))
            cells = RowGroup(table, odd, self._orders.get((number, group)), skip=self.book.clocks)
            self._cache[number, group] = cells
            while len(self._cache) > 1 and sum(held.nbytes for held in self._cache.values()) > self._cache_bytes:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end((number, group))
        return cells

    def _locate(self, spans: list[_Span]) -> tuple[RowGroup, StepRows] | None:
        """The location of an episode's steps; None without any."""
        if len(spans) == 1:
            piece, number, start, stop = spans[0]
            group = self._group(piece, number)
        else:
            groups = [self._group(piece, number) for piece, number, _, _ in spans]
            group = joined([part.stretch(span[2], span[3]) for part, span in zip(groups, spans, strict=True)])
            start, stop = 0, len(group)
        steps = group.step_rows(start, stop)
        return None if steps is None else (group, steps)

    def cut(self, key: Key, group: RowGroup, steps: StepRows) -> Trajectory:
        """Copy the trajectory at that location.

        Args:
          key: episode and agent.
          group, steps: a row group and the steps in it, from `located`.
        """
        columns: dict[str, Cells] = {}
        last: dict[str, object] = {}
        start, stop, end, in_order = steps.start, steps.stop, steps.end, steps.rows is None
        for name, column in group.columns.items():
            if in_order and isinstance(column.cells, np.ndarray) and column.count(start, stop) == stop - start:
                columns[name] = column.cells[start:stop].copy()
                continue
            cells = cut(column, steps)
            if cells is not None:
                columns[name] = cells
        if end is not None:
            last = {name: column.one(end) for name, column in group.observed if column.is_there(end)}
        t = _at(group.t, steps)
        is_whole = bool(t[0] == 0) if in_order else None  # then the numbers have no gap
        row = partial(self._rows.get, key[0])
        return Trajectory(key[0], key[1], t, columns, last, _at(group.times, steps), row, is_whole)


Key = tuple[str, str]
"""Episode and agent."""

_Span = tuple[int, int, int, int]
"""The location of consecutive rows of one episode and agent: piece, row group, first row and end."""


def _at(values: NDArray, steps: StepRows) -> NDArray:
    return values[steps.start : steps.stop].copy() if steps.rows is None else values[steps.rows]


class _EpisodeRows:
    """The rows of `episodes` by id, created on access, without empty fields."""

    def __init__(self, table: pa.Table) -> None:
        columns = {name: _listed(table[name]) for name in table.column_names if table[name].null_count < len(table)}
        self._always = tuple(name for name in columns if not table[name].null_count)
        self._values = list(zip(*(columns[name] for name in self._always), strict=True))
        self._sometimes = [(name, values) for name, values in columns.items() if table[name].null_count]
        ids = columns.get("episode_id", [None] * table.num_rows)
        self._index_of = {str(episode_id): index for index, episode_id in enumerate(ids)}

    def __contains__(self, episode_id: str) -> bool:
        return episode_id in self._index_of

    def get(self, episode_id: str) -> dict[str, Any]:
        """The row of an episode; {} if it has none."""
        index = self._index_of.get(episode_id)
        if index is None:
            return {}
        row = dict(zip(self._always, self._values[index], strict=True))
        for name, values in self._sometimes:
            if (value := values[index]) is not None:
                row[name] = value
        return row


def _listed(column: pa.ChunkedArray) -> Sequence[object]:
    """A column as Python values; times as datetimes (pyarrow itself would load pandas for them)."""
    if not pa.types.is_timestamp(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    values, valid = to_numpy(column)
    times = [datetime.fromtimestamp(nanos / 1e9, UTC) for nanos in values.tolist()]
    if valid is None:
        return times
    return [time if there else None for time, there in zip(times, valid.tolist(), strict=True)]


def _edges(keys: NDArray) -> NDArray:
    """Where runs of equal keys begin, and the end."""
    return np.concatenate([[0], np.flatnonzero(np.diff(keys)) + 1, [len(keys)]]) if len(keys) else np.zeros(1, np.int64)


def _acts(column: pa.ChunkedArray) -> NDArray:
    if not _is_nested(column.type):
        _, valid = to_numpy(column)
        return np.ones(len(column), dtype=bool) if valid is None else valid
    acts: NDArray = np.ones(len(column), dtype=bool) if not column.null_count else to_numpy(column.is_valid())[0]
    return acts


def _scopes(table: pa.Table, constant: str) -> Callable[[int], str]:
    """The scope of a row of a table; `constant` if it has no such column."""
    if "scope" not in table.column_names:
        return lambda row: constant
    column = table["scope"]
    return lambda row: str(column[row].as_py() or "")


def _is_nested(kind: pa.DataType) -> bool:
    return not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))
