"""After a rewind, filters with memory continue as if the abandoned rows never existed.

A sink gets all rows, including those that a rewind abandons. But a running average, or values collected for a dump,
must not carry them into the new attempt. So at a rewind the filters in front of the sink forget everything and get the
effective rows once more, with no sink behind them. They then remember what they would remember without the abandoned
rows.
"""

from __future__ import annotations

from rollbook.schema import manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollbook.protocols import Row, RunInfo, Sink
    from rollbook.sinks.filters._base import Filter


def deliver(run_folder: str, sink: Sink, rows: Sequence[Row]) -> None:
    """Write rows to a sink; at each rewind among them, reset the filters in front of it.

    Raises:
      Whatever the sink raises.
    """
    if not any(row.mark == "rewind" for row in rows):
        sink.write(rows)
        return
    begin = 0
    for index, row in enumerate(rows):
        if row.mark == "rewind":
            sink.write(rows[begin : index + 1])
            begin = index + 1
            go_back(run_folder, sink, row)
    if begin < len(rows):
        sink.write(rows[begin:])


def go_back(run_folder: str, sink: Sink, mark: Row) -> None:
    """Give the filters in front of a sink the memory of the effective history before the attempt that begins at `mark`.

    The mark comes last once more: rows that a filter held back were passed on when it came first.
    """
    filters = _filters_of(sink)
    if not any(_has_memory(stage) for stage in filters):
        return
    last = filters[-1]
    behind, last.to = last.to, _Nowhere(last.to.accepts)
    try:
        for stage in filters:
            stage._load({})
        for rows in _effective(run_folder, mark.attempt):
            filters[0].write(acceptable(rows, sink.accepts)[0])
        filters[0].write([mark])
    finally:
        last.to = behind


def acceptable(rows: Sequence[Row], accepts: frozenset[type]) -> tuple[list[Row], int]:
    """The rows with only the values that a sink accepts, and how many values were left out."""
    from dataclasses import replace

    accepted: list[Row] = []
    refused = 0
    for row in rows:
        values = row.values
        if row.mark or accepts.issuperset(map(type, values.values())):
            accepted.append(row)
            continue
        some = {key: value for key, value in values.items() if type(value) in accepts}
        refused += len(values) - len(some)
        if some:
            accepted.append(replace(row, values=some))
    return accepted, refused


def _effective(run_folder: str, attempt: int) -> Iterator[list[Row]]:
    """The rows that an attempt continues from, in order. Ends of earlier attempts are left out: the run did not end."""
    from rollbook.journal import JournalReader
    from rollbook.keeper.sealed import LazySealed

    entries = [entry for entry in manifest.look(run_folder).attempts if entry.n <= attempt]
    history = effective_rows(run_folder, manifest.RunJson(attempts=entries))
    with JournalReader(run_folder, sealed=LazySealed(run_folder)) as reader:
        for rows, _cursor in reader.batches({}):
            counting = [
                row
                for row in rows
                if row.attempt < attempt
                and row.mark not in ("final", "rewind")
                and history.has(row.attempt, row.writer, row.lane, row.seq, round(row.time * 1e9), row.at)
            ]
            if counting:
                yield counting


def effective_rows(run_folder: str, about: manifest.RunJson) -> manifest.EffectiveRows:
    """Which rows of a run count, by its attempts in `about`."""
    saved: dict[str, tuple[int, str, int, int, int]] = {}

    def saved_rows() -> dict[str, tuple[int, str, int, int, int]]:
        if not saved:
            from rollbook.journal import JournalReader
            from rollbook.keeper.sealed import LazySealed

            sealed = LazySealed(run_folder)
            with JournalReader(run_folder, sealed=sealed, tables=frozenset(["checkpoints"])) as reader:
                for row in (row for rows, _ in reader.batches({}) for row in rows):
                    row_id = (row.attempt, row.writer, row.lane, row.seq, round(row.time * 1e9))
                    saved.setdefault(str(row.values.get("checkpoint_id")), row_id)
        return saved

    return manifest.EffectiveRows(about, saved_rows)


def _filters_of(sink: object) -> list[Filter]:
    """The filters in front of a sink, outermost first."""
    import sys

    base = sys.modules.get("rollbook.sinks.filters._base")  # a filter module that is not imported cannot be in use
    filters: list[Filter] = []
    while base is not None and isinstance(sink, base.Filter):
        filters.append(sink)
        sink = sink.to
    return filters


def _has_memory(stage: Filter) -> bool:
    from rollbook.sinks.filters._base import Filter

    return type(stage)._load is not Filter._load


class _Nowhere:
    """A sink that accepts everything and keeps nothing."""

    def __init__(self, accepts: frozenset[type]) -> None:
        self.accepts = accepts

    def open(self, run: RunInfo) -> None:
        """Nothing to do."""

    def write(self, rows: Sequence[Row]) -> None:
        """Discard the rows."""

    def close(self) -> None:
        """Nothing to do."""
