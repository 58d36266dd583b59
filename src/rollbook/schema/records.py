"""The records that pass between rooms. `rollbook.protocols` offers them; `dataclasses.replace` and `fields` take them.

They are no dataclasses, and `folder` becomes a path when asked for: `dataclasses`, `pathlib` and what these import
would take 2 MiB of each keeper.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any, ClassVar, NoReturn, Self

    from rollbook.values import Value

_set = object.__setattr__


class _Fields:
    """What `dataclasses` asks of a class, made when it first asks: `replace` asks for each row of a filter."""

    def __init__(self) -> None:
        self._made: dict[type[Record], dict[str, Any]] = {}

    def __get__(self, record: object, owner: type[Record]) -> dict[str, Any]:
        if owner not in self._made:
            from dataclasses import field, make_dataclass

            parts = [(name, object, field(default=None)) for name in owner.names]
            self._made[owner] = make_dataclass(owner.__name__, parts).__dict__["__dataclass_fields__"]
        return self._made[owner]


class Record:
    """Named cells that do not change. Equal to another one of its class with equal cells.

    Attributes:
      names: of the cells, in the order in which they are passed.
    """

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()
    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Any]]
    else:
        __dataclass_fields__ = _Fields()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"{type(self).__name__}.{name} was to be set, but a {type(self).__name__} does not change: "
            f"dataclasses.replace(it, {name}=…) makes another one"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"{type(self).__name__}.{name} was to be deleted, but a {type(self).__name__} does not change"
        )

    def but(self, **cells: Any) -> Self:
        """The same with other cells: `dataclasses.replace` without what that imports."""
        return type(self)(*(cells.get(name, getattr(self, name)) for name in self.names))

    def _cells(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.names)

    def __eq__(self, other: object) -> bool:
        return self._cells() == other._cells() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._cells())

    def __repr__(self) -> str:
        from rollbook.system.brief import with_cells

        return with_cells(self, self.names)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._cells()


class Row(Record):
    """The content of one `log` call.

    Attributes:
      time: unix time in seconds.
      clocks: the known clocks of this row: name -> reading.
      values: full key (scope included) -> value. Missing keys are absent; NaN and infinities are kept.
      scope: the opened scope it was logged through, "" for the run itself.
      writer, lane, seq: the identity of the row. Together they are unique, also across restarts; `seq` grows within
        (writer, lane). A sink that may receive a row twice uses them as the idempotency key.
      attempt: the attempt that wrote it.
      mark: "" for a row of values. All other marks have empty `values`: "dump" for a dump mark; "rewind" where the run
        went back to a checkpoint and abandoned earlier rows (run.json has the cut); "final" for the last entry of a
        finished run.
      keys: of a dump mark, what was dumped, () for all; of a final one, the run's status.
      at: the id of the checkpoint it was logged at, "" for most rows.
      table: the table it belongs to. Sinks get rows of the tables in `tables.FORWARDED`. Readers can ask for rows of
        other tables (episodes, samples, …); those carry their cells by column, without the cells that are None.
    """

    __slots__ = __match_args__ = names = (
        "time",
        "clocks",
        "values",
        "scope",
        "writer",
        "lane",
        "seq",
        "attempt",
        "mark",
        "keys",
        "at",
        "table",
    )
    time: float
    clocks: Mapping[str, int]
    values: Mapping[str, Value]
    scope: str
    writer: str
    lane: int
    seq: int
    attempt: int
    mark: str
    keys: tuple[str, ...]
    at: str
    table: str

    def __init__(
        self,
        time: float,
        clocks: Mapping[str, int],
        values: Mapping[str, Value],
        scope: str = "",
        writer: str = "",
        lane: int = 0,
        seq: int = 0,
        attempt: int = 1,
        mark: str = "",
        keys: tuple[str, ...] = (),
        at: str = "",
        table: str = "metrics",
    ) -> None:
        _set(self, "time", time)
        _set(self, "clocks", clocks)
        _set(self, "values", values)
        _set(self, "scope", scope)
        _set(self, "writer", writer)
        _set(self, "lane", lane)
        _set(self, "seq", seq)
        _set(self, "attempt", attempt)
        _set(self, "mark", mark)
        _set(self, "keys", keys)
        _set(self, "at", at)
        _set(self, "table", table)


class RunInfo(Record):
    """What a sink learns about its run when it is opened.

    Attributes:
      folder: the run's folder.
      project, name, id, group, tags, notes: as `init` was given them; `id` is unique.
      attempt: number of the attempt, from 1.
      clocks: all clock names of the run, the standard ones first.
      config: the configuration when the attempt began.
      seed: the run's seed; None if it is unknown.
      x: the clock for a sink with one step axis; "" means the first of `clocks` that a row knows.
      resumed: the run was resumed; a file sink appends.
      total: planned length of the run: clock -> reading.
    """

    __match_args__ = names = (
        "folder",
        "project",
        "name",
        "id",
        "attempt",
        "clocks",
        "config",
        "seed",
        "group",
        "tags",
        "notes",
        "x",
        "resumed",
        "total",
    )
    __slots__ = ("_folder", *names[1:])
    project: str
    name: str
    id: str
    attempt: int
    clocks: tuple[str, ...]
    config: Mapping[str, Any]
    seed: int | None
    group: str | None
    tags: tuple[str, ...]
    notes: str
    x: str
    resumed: bool
    total: Mapping[str, int]

    def __init__(
        self,
        folder: Path | str,
        project: str,
        name: str,
        id: str,
        attempt: int = 1,
        clocks: tuple[str, ...] = (),
        config: Mapping[str, Any] | None = None,
        seed: int | None = None,
        group: str | None = None,
        tags: tuple[str, ...] = (),
        notes: str = "",
        x: str = "",
        resumed: bool = False,
        total: Mapping[str, int] | None = None,
    ) -> None:
        _set(self, "_folder", folder)
        _set(self, "project", project)
        _set(self, "name", name)
        _set(self, "id", id)
        _set(self, "attempt", attempt)
        _set(self, "clocks", clocks)
        _set(self, "config", {} if config is None else config)
        _set(self, "seed", seed)
        _set(self, "group", group)
        _set(self, "tags", tags)
        _set(self, "notes", notes)
        _set(self, "x", x)
        _set(self, "resumed", resumed)
        _set(self, "total", {} if total is None else total)

    @property
    def folder(self) -> Path:
        """The run's folder."""
        from pathlib import Path

        return Path(self._folder)  # type: ignore[attr-defined]

    @property
    def path(self) -> str:
        """The run's folder as a text; `pathlib` is not loaded."""
        folder: str = os.path.abspath(self._folder)  # type: ignore[attr-defined]
        return folder


class Alert(Record):
    """What a health rule found. `rollbook.schema.alerts.Alerts` reports and stores it.

    Attributes:
      rule: the name of the rule.
      level: "note" (an oddity, not an alarm), "warn" or "fail".
      message: one sentence for people, with the numbers that caused the alert.
      evidence: those numbers: rows, steps, limits; plain JSON data.
      source: where the rule's threshold comes from, or who found it.
      key: the series it is about, "" for none. An alert is reported once per rule and key.
      clocks: the point in training; {} for now.
    """

    __slots__ = __match_args__ = names = ("rule", "level", "message", "evidence", "source", "key", "clocks")
    rule: str
    level: str
    message: str
    evidence: Mapping[str, Any]
    source: str
    key: str
    clocks: Mapping[str, int]

    def __init__(
        self,
        rule: str,
        level: str,
        message: str,
        evidence: Mapping[str, Any] | None = None,
        source: str = "",
        key: str = "",
        clocks: Mapping[str, int] | None = None,
    ) -> None:
        _set(self, "rule", rule)
        _set(self, "level", level)
        _set(self, "message", message)
        _set(self, "evidence", {} if evidence is None else evidence)
        _set(self, "source", source)
        _set(self, "key", key)
        _set(self, "clocks", {} if clocks is None else clocks)
