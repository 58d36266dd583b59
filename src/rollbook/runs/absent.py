"""The errors about runs that are not there; every door has these words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rollbook.errors import BadInput, RunNotFound, did_you_mean


def below(root: str) -> str:
    """Where runs were looked for; "" are several folders."""
    return f"below {root}" if root else "in the folders that were opened"


def no_run_called(name: str, rows: Sequence[Mapping[str, object]], root: str) -> RunNotFound:
    """No run of a set has a name; suggests similar names.

    Args:
      rows: the runs that there are; root: where they lie.
    """
    known = dict.fromkeys(str(row["project"]) for row in rows)
    known.update(dict.fromkeys(f"{row['project']}/{row['name']}" for row in rows))
    return RunNotFound(f"there is no run {name!r:.80} {below(root)}.", did_you_mean(name, list(known)))


def no_run_below(root: str) -> RunNotFound:
    """A folder or an address has no run."""
    return RunNotFound(f"there is no run {below(root)}")


def no_run_for(condition: str, root: str) -> RunNotFound:
    """None of the runs that there are meets a condition."""
    return RunNotFound(
        f"there are no runs for which {condition} {below(root)}.",
        "List what is there with rollbook ls, or runs.table()",
    )


def empty_set(asked: str, root: str) -> BadInput:
    """A question that needs runs was asked of none; `asked` begins the message."""
    return BadInput(
        f"{asked}: the set is empty: no run {below(root)} was chosen.",
        "List what is there with rollbook ls, or runs.table()",
    )
