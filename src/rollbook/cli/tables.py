"""`rollbook episodes` and `rollbook samples`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option, find_book, format_options, limit_option, run_argument_or_last
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import print_arrow, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow

    from rollbook.book import Book

_HINT = "--wide, --json and --csv show all columns"
_PLUMBING = frozenset(("time", "attempt", "writer", "lane", "seq", "index", "at"))
_SHOWN_FIRST = frozenset(("episode_id", "return", "length", "terminated", "truncated", "complete", "seconds", "seed"))
_LAST_OF_SAMPLES = ("sample_id", "content", "first_seen", "item_type", "item_raw", "item_path", "item_size")


@click.command()
@run_argument_or_last
@dir_option
@click.option("--episode", default=None, help='Show one with all it has: an id, "best", "worst", "first" or "last".')
@click.option("--where", default=None, help='SQL condition, such as "length > 100".')
@click.option("--order-by", default=None, help="SQL order, such as '\"return\" desc'.")
@limit_option(20)
@click.option("--wide", is_flag=True, help="Show all columns, however wide that is.")
@format_options
def episodes(
    run: str,
    root: str,
    episode: str | None,
    where: str | None,
    order_by: str | None,
    limit: int,
    wide: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """List the episodes of a run, or show one.

    \b
    Examples:
      rollbook episodes last --order-by '"return" desc' --limit 5
      rollbook episodes cartpole/ppo --where truncated --csv
      rollbook episodes last --episode best
    """
    book = find_book(run, root, lambda book: book.row_count("episodes") > 0, "episodes")
    if episode is not None:
        from rollbook.cli.one_episode import show_episode

        show_episode(book, episode, as_json=as_json)
        return
    table = book.episodes(where=where or None, order_by=order_by or None, limit=int(limit) + 1)
    table, more = table.slice(0, limit), table.num_rows > limit
    if as_json or as_csv:
        print_arrow(table, as_json=as_json, as_csv=as_csv)
    else:
        rows, names = _episodes_for_people(book, table)
        print_fitted(rows, names, width=None if wide else terminal_width(), hint=_HINT)
    _remark_on_more(book, "episodes", more)


@click.command()
@run_argument_or_last
@dir_option
@click.option("--search", default=None, help="Words that must all occur in the texts of a sample.")
@click.option("--where", default=None, help='SQL condition, such as "reward > 1 and is_new".')
@click.option("--order-by", default=None, help='SQL order, such as "reward desc".')
@limit_option(20)
@click.option("--unique", is_flag=True, help="One row for each different item, and how often it was seen.")
@click.option("--wide", is_flag=True, help="Show all columns and whole items, however wide that is.")
@format_options
def samples(
    run: str,
    root: str,
    search: str | None,
    where: str | None,
    order_by: str | None,
    limit: int,
    unique: bool,
    wide: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Search and sort the samples of a run.

    \b
    Examples:
      rollbook samples last --where "reward > 1" --order-by "reward desc"
      rollbook samples last --search sorry --json
      rollbook samples last --unique --order-by "times_seen desc"
    """
    book = find_book(run, root, lambda book: book.row_count("samples") > 0, "samples")
    if unique:
        samples = book.samples(where, order_by, limit + 1, unique=True, search=search)
        samples, more = samples.slice(0, limit), samples.num_rows > limit
    else:
        samples = book.samples(where or None, order_by or None, int(limit) + 1, search=search)
        samples, more = samples.slice(0, limit), samples.num_rows > limit
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


def _remark_on_more(book: Book, table: str, more: bool) -> None:
    if more:
        remark(f"… more rows; --limit shows them (the table has {book.table(table).num_rows:,})")


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

    filmed = {row["episode_id"] for row in book.media("video").to_pylist() if row.get("episode_id")}
    rows = []
    for row in _pylist(episodes):
        parts = ["steps"] if row.get("steps_kept") else []
        parts += ["film"] if row.get("episode_id") in filmed else []
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
