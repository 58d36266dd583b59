"""Advantages, which reward functions never see: from the trainer's own record, or from the Parquet files TRL writes.

They are known only after the rewards, so they are rows of a table of their own, `advantages` (sample_id, advantage),
which `completions(book)` joins to the samples.
"""

from __future__ import annotations

import re
from pathlib import Path

from rollbook.adapters.trl.batches import Batch, Link, link_of, texts
from rollbook.ground.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from rollbook.book.book import Book
    from rollbook.run.scope import Scope

__all__ = ["attach_advantages", "take_from_files", "take_from_trainer"]

_FILE = re.compile(r"completions_(\d+)\.parquet")


def attach_advantages(run: Scope, output_dir: str | os.PathLike[str]) -> int:
    """Take the advantages from `<output_dir>/completions/*.parquet`, which `log_completions=True` makes GRPO write.

    A completion and its row there are matched by step, order, and the texts of both. What has an advantage already is
    left alone, so calling it again does nothing. `RollbookCallback` does this by itself while training; call it for
    files that appeared later.

    Args:
      run: the run that holds the completions, or a scope of it.
      output_dir: the trainer's.
    Returns:
      How many completions got their advantage now.
    """

    def work() -> int:
        batches = _without_advantages(run.run.book)
        return _match_files(run, batches, Path(output_dir) / "completions", 0)[0]

    return int(Bill(to=run).guard("trl_advantages", "attaching advantages", work) or 0)


def take_from_files(run: Scope, output_dir: str, since: int = -1) -> int:
    """The same for the batches that wait in memory; only files of steps after `since`. Returns the last step seen."""
    link = link_of(run)
    if not link.waiting:
        return since
    _, last = _match_files(run, link.waiting, Path(output_dir) / "completions", link.rank, since)
    return last


def take_from_trainer(run: Scope) -> bool:
    """The advantages of the batches that wait, from the record the trainer keeps of the last batch it generated.

    That record is TRL's own affair, so nothing is taken unless it has the shape and the very texts expected.

    Returns:
      Whether such a record was there.
    """
    link = link_of(run)
    trainer = link.trainer() if link.trainer is not None else None
    logs = getattr(trainer, "_logs", None)
    if not isinstance(logs, dict) or not {"prompt", "completion", "advantages"} <= set(logs):
        return False
    if link.waiting:
        rows = list(zip(texts(logs["prompt"]), texts(logs["completion"]), strict=False))
        _match(run, link.waiting, rows, list(logs["advantages"]), link.rank, None)
    return True


def _match_files(run: Scope, waiting: list[Batch], folder: Path, rank: int, since: int = -1) -> tuple[int, int]:
    files = {int(match[1]): path for path in folder.glob("*.parquet") if (match := _FILE.fullmatch(path.name))}
    taken, last = 0, since
    for step in sorted(files):
        if step <= since:
            continue
        try:
            rows, advantages = _read(files[step])
        except (OSError, ValueError):  # still being written: the next call finds it whole
            break
        taken += _match(run, waiting, rows, advantages, rank, step)
        last = step
    return taken, last


def _read(path: Path) -> tuple[list[tuple[str, str]], list[float]]:
    from pyarrow import parquet

    table = parquet.read_table(path, columns=["prompt", "completion", "advantage"])
    prompts, completions = texts(table["prompt"].to_pylist()), texts(table["completion"].to_pylist())
    return list(zip(prompts, completions, strict=True)), table["advantage"].to_pylist()


def _match(
    run: Scope,
    waiting: list[Batch],
    rows: Sequence[tuple[str, str]],
    advantages: Sequence[float],
    rank: int,
    step: int | None,
) -> int:
    """Give the batches their advantages; those that got them leave `waiting`. The newest batch ends the record.

    Args:
      step: of the optimizer when the record was made; batches that began later are not in it.
    """
    if len(rows) != len(advantages):
        return 0
    taken, end = 0, len(rows)
    for batch in reversed(waiting[:]):
        n = len(batch.completions)
        if not n or (step is not None and batch.step > step):
            continue
        mine = list(zip(batch.prompts, batch.completions, strict=True))
        start = _last_block(rows, mine, end)
        if start is None:
            continue
        end = start
        waiting.remove(batch)
        taken += n
        values = [float(value) for value in advantages[start : start + n]]
        columns = {"sample_id": batch.sample_ids, "advantage": values}
        run.record("advantages", columns, n=n, gradient_step=batch.logged_at, policy_version=batch.step)
    return taken


def _last_block(rows: Sequence[tuple[str, str]], mine: list[tuple[str, str]], end: int) -> int | None:
    """Where `mine` stands in `rows` for the last time before `end`: processes and batches are blocks of one length."""
    n = len(mine)
    for start in range(end - n, -1, -1):
        if rows[start] == mine[0] and list(rows[start : start + n]) == mine:
            return start
    return None


def _without_advantages(book: Book) -> list[Batch]:
    """The batches in the book that have no advantages yet, the oldest first."""
    from rollbook.errors import UnknownKey

    samples = book.table("samples")
    if "generation" not in samples.column_names:
        return []
    try:
        known = set(book.table("advantages")["sample_id"].to_pylist())
    except UnknownKey:
        known = set()
    batches: dict[tuple[object, ...], Batch] = {}
    wanted = ("sample_id", "item", "prompt", "generation", "mode", "policy_version", "writer", "batch")
    for row in samples.select([name for name in wanted if name in samples.column_names]).to_pylist():
        if row["generation"] is None or row["sample_id"] in known:
            continue
        key = row.get("writer"), row["generation"], row.get("mode")
        step = int(str(row["generation"]).partition(".")[0])
        batch = batches.setdefault(key, Batch(step, 0, row.get("mode"), [], [], None, {}))
        batch.prompts.append(row["prompt"])
        batch.completions.append(row["item"])
        batch.sample_ids.append(row["sample_id"])
    return list(batches.values())


def forget(link: Link) -> None:
    """Wait for nothing any more."""
    link.waiting.clear()
