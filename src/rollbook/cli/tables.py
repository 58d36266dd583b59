"""`rollbook episodes`, `samples`, `text`, `media` and `rows`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from rollbook.book.questions import Episodes, MediaQuestion, Rows, Samples, Text
from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_book, format_options, run_argument, run_argument_or_last
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import print_arrow, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow

    from rollbook.book import Book

_HINT = "--wide, --json and --csv show all columns"
_ALL_COLUMNS = "--json and --csv show all columns"
_PLUMBING = frozenset(("time", "attempt", "writer", "lane", "seq", "index", "at"))
_SHOWN_FIRST = frozenset(("episode_id", "return", "length", "terminated", "truncated", "complete", "seconds", "seed"))
_LAST_OF_SAMPLES = ("sample_id", "content", "first_seen", "item_type", "item_raw", "item_path", "item_size")


@click.command()
@run_argument_or_last
@dir_option
@click.option("--episode", default=None, help='Show one with all it has: an id, "best", "worst", "first" or "last".')
@asks(Episodes, defaults={"limit": 20})
@click.option("--wide", is_flag=True, help="Show all columns, without shortening.")
@format_options
def episodes(run: str, root: str, episode: str | None, wide: bool, as_json: bool, as_csv: bool, **options: Any) -> None:
    """List the episodes of a run, or show one.

    \b
    Examples:
      rollbook episodes last --order-by '"return" desc' --limit 5
      rollbook episodes cartpole/ppo --outcome truncated --csv
      rollbook episodes last --episode best
    """
    book = _book_with(run, root, "episodes")
    if episode is not None:
        from rollbook.cli.one_episode import show_episode

        show_episode(book, episode, as_json=as_json)
        return
    table, more = _asked(book.episodes, options)
    if as_json or as_csv:
        print_arrow(table, as_json=as_json, as_csv=as_csv)
    else:
        rows, names = _episodes_for_people(book, table)
        print_fitted(rows, names, width=None if wide else terminal_width(), hint=_HINT)
    _remark_on_more(book, "episodes", more)


@click.command()
@run_argument_or_last
@dir_option
@asks(Samples, defaults={"limit": 20})
@click.option("--wide", is_flag=True, help="Show all columns and whole items, without shortening.")
@format_options
def samples(run: str, root: str, wide: bool, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Search and sort the samples of a run.

    \b
    Examples:
      rollbook samples last --where "reward > 1" --order-by "reward desc"
      rollbook samples last --search sorry --json
      rollbook samples last --unique --order-by "times_seen desc"
    """
    book, unique = _book_with(run, root, "samples"), options["unique"]
    samples, more = _asked(book.samples, options)
    if as_json or as_csv:
        print_arrow(samples, as_json=as_json, as_csv=as_csv)
    else:
        names = [name for name in _useful(samples) if name not in ("item", *_LAST_OF_SAMPLES)]
        clocks = [name for name in book.clocks if name in names]
        names = [name for name in names if not unique or name not in ("is_new", "first_time")]
        seen = ("times_seen", "first_seen", "last_seen") if unique else ("is_new",)
        first = [name for name in (*clocks[:1], "group", *seen) if name in _useful(samples)]
        own = [name for name in names if name not in (*clocks, "batch")]
        last = [name for name in (*clocks, "batch", *_LAST_OF_SAMPLES) if name in _useful(samples)]
        names = list(dict.fromkeys([*first, *own, *last, "item"]))
        rows = [{**row, "item": " ".join(str(row.get("item")).split())} for row in _pylist(samples)]
        print_fitted(rows, names, wide="item", width=None if wide else terminal_width(), hint=_HINT)
    _remark_on_more(book, "samples", more)


@click.command()
@run_argument_or_last
@dir_option
@asks(Text, defaults={"limit": 20}, short={"key": "-k"})
@format_options
def text(run: str, root: str, as_json: bool, as_csv: bool, **options: Any) -> None:
    """List the texts and notes of a run.

    \b
    Examples:
      rollbook text last --key note
      rollbook text cartpole/ppo --search diverged --json
    """
    book = _book_with(run, root, "text")
    _print(book, "text", *_asked(book.text, options), as_json=as_json, as_csv=as_csv)


@click.command()
@run_argument_or_last
@dir_option
@asks(MediaQuestion, defaults={"limit": 20}, short={"key": "-k"})
@format_options
def media(run: str, root: str, as_json: bool, as_csv: bool, **options: Any) -> None:
    """List the pictures, videos and figures of a run, and their files.

    \b
    Examples:
      rollbook media last --kind video
      rollbook media cartpole/ppo --order-by "time desc" --limit 1 --json
    """
    book = _book_with(run, root, "media")
    _print(book, "media", *_asked(book.media, options), as_json=as_json, as_csv=as_csv)


@click.command()
@run_argument
@click.argument("table")
@dir_option
@asks(Rows, defaults={"limit": 20}, arguments=("table",))
@format_options
def rows(run: str, table: str, root: str, as_json: bool, as_csv: bool, **options: Any) -> None:
    """List rows of any table of a run: checkpoints, alerts, rewards, or one that the program recorded itself.

    \b
    Examples:
      rollbook rows last checkpoints
      rollbook rows cartpole/ppo alerts --search entropy --json
      rollbook rows last episodes --where "length > 3" --limit 5
    """
    book = find_book(run, root)
    _print(book, table, *_asked(partial(book.rows, table), options), as_json=as_json, as_csv=as_csv)


def _book_with(run: str, root: str, table: str) -> Book:
    return find_book(run, root, lambda book: book.row_count(table) > 0, table)


def _asked(ask: Callable[..., pyarrow.Table], options: dict[str, Any]) -> tuple[pyarrow.Table, bool]:
    """The rows that were asked for, and whether there are more."""
    limit = options["limit"]
    table = ask(**{**options, "limit": limit + 1 if limit >= 0 else limit})
    return table.slice(0, limit), table.num_rows > limit


def _print(book: Book, name: str, table: pyarrow.Table, more: bool, *, as_json: bool, as_csv: bool) -> None:
    if as_json or as_csv:
        print_arrow(table, as_json=as_json, as_csv=as_csv)
    else:
        print_fitted(_pylist(table), _useful(table), width=terminal_width(), hint=_ALL_COLUMNS)
    _remark_on_more(book, name, more)


def _remark_on_more(book: Book, table: str, more: bool) -> None:
    if more:
        remark(f"… more rows; --limit shows them (the table has {book.row_count(table):,})")


def _useful(table: pyarrow.Table) -> list[str]:
    """The columns that are useful to readers: no internal ones, no empty ones, a scope only if there are several."""
    names = [n for n in table.column_names if n not in _PLUMBING and table[n].null_count < table.num_rows]
    if "scope" in names and len(set(table["scope"].to_pylist())) == 1:
        names.remove("scope")
    return names


def _pylist(table: pyarrow.Table) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = table.select([n for n in table.column_names if n != "time"]).to_pylist()
    return rows


def _episodes_for_people(book: Book, episodes: pyarrow.Table) -> tuple[list[dict[str, object]], list[str]]:
    """Rows and the names of their columns in order of importance."""
    from rollbook.cli.one_episode import duration, end_of

    with_video = {row["episode_id"] for row in book.media("video").to_pylist() if row.get("episode_id")}
    rows = []
    for row in _pylist(episodes):
        parts = ["steps"] if row.get("steps_kept") else []
        parts += ["video"] if row.get("episode_id") in with_video else []
        row |= {"end": end_of(row), "took": duration(row.get("seconds")), "kept": ", ".join(parts)}
        rows.append({**row, "episode": row.get("episode_id")})
    useful = _useful(episodes)
    clocks = [name for name in book.clocks if name in useful]
    first = ["episode", *(["scope"] if "scope" in useful else []), *clocks, "return", "length", "end", "took", "seed"]
    first = [name for name in first if name in useful or name in ("episode", "end", "took")]
    if any(row["kept"] for row in rows):
        first.append("kept")
    own = [name for name in useful if name not in _SHOWN_FIRST and name.partition("/")[0] not in ("running",)]
    rest = sorted(own, key=lambda name: (not name.startswith("final/"), not name.startswith("info/")))
    running = [name for name in useful if name.startswith("running/")]
    return rows, list(dict.fromkeys([*first, *rest, *running]))
