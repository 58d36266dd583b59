"""One episode on the screen: its row, and what was kept of it."""

from __future__ import annotations

import os
from collections.abc import Mapping

import click

from rollbook.cli.output import cell, clean, number, print_json
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book

_NOT_SHOWN = frozenset(
    (
        "time",
        "attempt",
        "writer",
        "lane",
        "seq",
        "index",
        "at",
        "episode_id",
        "return",
        "length",
        "seconds",
        "terminated",
        "truncated",
        "complete",
        "steps_kept",
    )
)
_NOT_OF_STEPS = frozenset(("time", "episode_id", "scope", "at", "attempt", "writer", "lane", "seq", "index"))


def duration(seconds: object) -> str:
    """0.4 ms, 1.2 s, 3 m 20 s."""
    if not isinstance(seconds, (int, float)):
        return "-"
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} m {int(seconds % 60):02d} s"


def end_of(row: Mapping[str, object]) -> str:
    """How an episode ended, in a word."""
    if row.get("terminated"):
        return "terminated"
    if row.get("truncated"):
        return "truncated"
    return "cut short" if row.get("complete") is False else "-"


def show_episode(book: Book, which: str, *, as_json: bool = False) -> None:
    """Print everything about an episode."""
    episode = book.episode(which)
    files = {key: os.fspath(path) for key, path in episode.files().items()}
    steps, rewards, alerts = episode.steps(), episode.rewards().to_pylist(), episode.alerts().to_pylist()
    checkpoint = episode.checkpoint()
    if as_json:  # what is printed as lines below, as data; only the number of recorded steps
        answer = {
            **episode.row,
            "rewards": [{k: v for k, v in row.items() if k not in _NOT_OF_STEPS} for row in rewards],
            "recorded_steps": steps.num_rows,
            "files": files,
            "alerts": [row["message"] for row in alerts],
            "checkpoint": checkpoint["checkpoint_id"] if checkpoint else None,
        }
        print_json(answer)
        return
    row = episode.row
    click.echo(click.style(f"episode {clean(episode.id)}", bold=True) + f"  {clean(book.project)}/{clean(book.name)}")
    # Its row: the known columns in a sentence, and a line for each that the program or an environment added.
    length = row.get("length")
    took = f" in {duration(row['seconds'])}" if row.get("seconds") is not None else ""
    click.echo(f"return {number(row.get('return'))} over {number(length)} steps{took}, {end_of(row)}")
    others = {name: value for name, value in row.items() if name not in _NOT_SHOWN and value is not None}
    width = max(map(len, others), default=0)
    for name, value in others.items():
        click.echo(f"  {clean(name):{width}s}  {cell(name, value)}")
    # What was kept besides: rewards by part, steps, media, alerts and the checkpoint to play it again from.
    for reward in rewards:
        whose = " ".join(clean(reward[n]) for n in ("agent", "component", "stage") if reward.get(n))
        click.echo(f"reward      {whose}: sum {number(reward.get('sum'))}, mean {number(reward.get('mean'))}")
    if steps.num_rows:
        names = [n for n in steps.column_names if n not in _NOT_OF_STEPS and not n.startswith("shape/")]
        names = [n for n in names if steps[n].null_count < steps.num_rows and n not in book.clocks]
        click.echo(
            f"steps       {amount(steps.num_rows, 'row')} ({clean(', '.join(names))}), "
            f"kept for: {row.get('steps_kept') or '-'}"
        )
    for key, path in files.items():
        click.echo(f"media       {clean(key)}: {clean(path)}")
    for alert in alerts:
        click.echo(f"alert       {clean(alert['message'])}")
    if checkpoint:
        click.echo(f"checkpoint  {clean(checkpoint['path'])}, the newest when it ended")
