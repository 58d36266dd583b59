"""`rollbook ls`."""

from __future__ import annotations

import math
import os
from typing import Any

import click

from rollbook.cli.find import add_what_is_there, find_runs, format_options, runs_options
from rollbook.cli.fitted_table import print_answer, print_fitted, terminal_width
from rollbook.cli.output import ago, clean, number, print_arrow, print_rows, remark, seconds
from rollbook.errors import BadInput
from rollbook.runs.measures import WORDS, measure_of_option, split_columns
from rollbook.schema.aliases import SCORES
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollbook.runs.run_set import RunSet


@click.command()
@runs_options
@click.option(
    "--limit", default=50, type=click.IntRange(min=1), show_default=True, help="At most this many, newest first."
)
@click.option("--columns", default=None, help='Which columns, such as "seed,config.lr,summary.best".')
@click.option(
    "--metric",
    "-m",
    "metrics",
    multiple=True,
    help='A number of a key as a column: "test/return", its last row, or "test/return=WAY". The ways: '
    f"{', '.join(WORDS)}.",
)
@click.option("--by", default=None, help='Groups instead of runs: fields such as config.algo; "auto": what differs.')
@click.option("--sort", default=None, help='Sort by a column, or several; "-test/return" puts the highest first.')
@click.option("--left-out", is_flag=True, help="List files of other tools that cannot be read, and why.")
@format_options
def ls(
    runs: tuple[str, ...],
    root: str,
    where: str | None,
    limit: int,
    columns: str | None,
    metrics: tuple[str, ...],
    by: str | None,
    sort: str | None,
    left_out: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """List runs, newest first: all below --dir, or those of folders, projects or names.

    CSV has each setting of the configuration as a column, JSON all of run.json that a listing knows.

    \b
    Examples:
      rollbook ls
      rollbook ls cartpole
      rollbook ls results old/results
      rollbook ls results --where "seed == 3"
      rollbook ls --columns seed,config.lr -m test/return=best --sort -test/return
      rollbook ls --columns 'seed,mean("test/return", last="10%")'
      rollbook ls --where 'last("test/return") > 10'
      rollbook ls --by auto -m test/return
      rollbook ls --json | jq '.[].path'
    """
    if left_out:
        _left_out(runs or (root,), as_json=as_json, as_csv=as_csv)
        return
    needs_all = where or columns or metrics or sort or by
    chosen = find_runs(runs, root, where, may_be_none=True, newest=None if needs_all else limit)
    problems, unread = chosen.problems, 0 if needs_all else chosen.unread
    everything = find_runs(runs, root, may_be_none=True, newest=0) if where and not chosen else chosen
    if not len(everything) + everything.unread and not (as_json or as_csv):
        remark(add_what_is_there(f"there is no run below {clean(', '.join(runs) or root)}", chosen))
        return
    if where and not chosen:
        remark(f"none of {amount(len(everything) + everything.unread, 'run')} matches")
    if by is not None:
        _groups(chosen, by, metrics, limit, as_json=as_json, as_csv=as_csv)
        return
    if columns or metrics or sort:
        _chosen(chosen, columns, metrics, sort, limit, as_json=as_json, as_csv=as_csv)
        return
    shown = chosen.newest(limit)
    if as_csv and not as_json:
        print_arrow(shown.table(), as_csv=True)
    elif as_json:
        print_rows(shown.rows(), as_json=True)
    else:
        lines = [_line(row) for row in shown.rows()]
        sometimes = {name for name in ("last", "best", "made by", "cause") if all(line[name] is None for line in lines)}
        columns_shown = [name for name in _COLUMNS if name not in sometimes]
        print_fitted(lines, columns_shown, width=terminal_width())
        for problem in problems:
            remark(f"left out: {clean(problem)}")
    if (older := len(chosen) - len(shown) + unread) > 0:
        remark(f"… {older:,} older runs; --limit shows them")


def _left_out(folders: Sequence[str], *, as_json: bool, as_csv: bool) -> None:
    """The files below folders that no importer reads, each with what to do."""
    from pathlib import Path

    from rollbook.formats.importers import Walk
    from rollbook.runs.catalog import stamped

    strange: dict[Path, str] = {}
    for folder in folders:
        base = os.path.abspath(folder)
        if not os.path.isdir(base):
            raise BadInput(
                f"ls {folder} --left-out: there is no such folder. Name the folder with the files of other tools"
            )
        strange.update(Walk(Path(base), stamped(base)).strange)
    if as_json or as_csv:
        print_rows([{"file": str(file), "why": why} for file, why in strange.items()], as_json=as_json)
        return
    for file, why in strange.items():
        click.echo(clean(f"{file}: {why}"))
    if not strange:
        remark(f"every file with results below {clean(', '.join(folders))} has an importer, judging by its name")


def _groups(runs: RunSet, by: str, metrics: tuple[str, ...], limit: int, *, as_json: bool, as_csv: bool) -> None:
    """The groups, with the centre and interval of each number."""
    found = runs.groups(by, _ways(metrics))
    if as_json:
        print_rows(found, as_json=True)
        return
    rows = []
    for group in found:
        row: dict[str, object] = {"group": group["group"], "runs": len(group["runs"])}
        row["status"] = ", ".join(f"{n} {status}" for status, n in group["statuses"].items())
        for name in [name for name in group if name not in ("group", "runs", "statuses")]:
            cell = group[name]
            if as_csv:
                row |= {name: cell["centre"], **{f"{name} {part}": cell[part] for part in ("low", "high", "n")}}
            else:
                row[name] = _centre(cell, len(group["runs"]))
        rows.append(row)
    if as_csv:
        print_rows(rows, as_csv=True)
        return
    print_answer([], rows, limit=limit)


def _centre(cell: dict[str, Any], runs: int) -> str:
    """The IQM of a group, its interval, and how many runs stand behind them if not all do."""
    words = number(cell["centre"])
    if cell["low"] is not None:
        words += f" ({number(cell['low'])} to {number(cell['high'])})"
    return words if cell["n"] == runs else f"{words}, {cell['n']} of {runs} runs"


def _ways(metrics: tuple[str, ...]) -> dict[str, list[str]]:
    """{key: its numbers} of the option --metric."""
    ways: dict[str, list[str]] = {}
    for one in map(measure_of_option, metrics):
        ways.setdefault(one.key, []).append(one.how)
    return ways


def _chosen(
    runs: RunSet,
    columns: str | None,
    metrics: tuple[str, ...],
    sort: str | None,
    limit: int,
    *,
    as_json: bool,
    as_csv: bool,
) -> None:
    """The requested columns, by `RunSet.table`, sorted."""
    from rollbook.runs.fields import field_of
    from rollbook.runs.ordering import is_key, ordered
    from rollbook.runs.results import latest_of
    from rollbook.runs.run_set import RunSet as Runs

    wanted, ways = split_columns(columns or "") or ["status", "seed"], _ways(metrics)
    order = split_columns(sort or "")
    for name in (each.removeprefix("-") for each in order):  # what decides the order is shown, too
        if is_key(name, runs.rows()):
            ways.setdefault(name, ["last"])
        elif name not in ways:
            wanted.append(name)
    shown = Runs(ordered(runs.rows(), order, ways)[:limit], runs.root)
    table = shown.table(list(dict.fromkeys(wanted)), ways or None)
    rows: list[dict[str, object]] = table.to_pylist()
    for row, book, about in zip(rows, shown, shown.rows(), strict=True):
        row["run"], row["id"] = f"{about['project']}/{about['name']}", about["id"]
        last = latest_of(book, ways) if ways else {}
        if diverged := [key for key, value in last.items() if value is not None and not math.isfinite(value)]:
            row["ends in NaN"] = ", ".join(diverged)
    marks = ["ends in NaN"] if any("ends in NaN" in row for row in rows) else []
    names = list(dict.fromkeys(["id", *table.column_names, *marks, "run"]))
    if as_json or as_csv:
        print_rows(rows, as_json=as_json, as_csv=as_csv, columns=names)
        return
    every = runs.rows()
    settings = {name for name in wanted if field_of(name, every, f"--columns {name}").startswith("config.")}
    print_fitted(rows, names, width=terminal_width(), settings=settings)
    if len(runs) > limit:
        remark(f"… {len(runs) - limit:,} more runs; --limit shows them")


_COLUMNS = ("run", "id", "made by", "status", "seed", "last", "best", "begun", "took", "attempts", "cause", "tags")


def _score(summary: dict[str, object]) -> tuple[float | str | None, float | None]:
    """The last and the best value of the first canonical score that the run has. The best is one row, and may be luck;
    next to the last one that shows."""
    for name in SCORES:
        best, last = summary.get(f"{name}.best"), summary.get(f"{name}.last")
        if isinstance(best, (int, float)):
            return last if isinstance(last, (int, float)) and math.isfinite(last) else "NaN", best
    return None, None


def _took(row: dict[str, Any]) -> str:
    """How long the run was at work; of a resumed one, the time between its attempts does not count."""
    created, ended, worked = row.get("created"), row.get("ended"), row.get("worked")
    if worked is not None and (row.get("attempts") or 0) > 1:
        return seconds(worked)
    return seconds(ended - created) if created and ended else "-"


def _line(row: dict[str, Any]) -> dict[str, object]:
    last, best = _score(row.get("summary") or {})
    return {
        "run": f"{row['project']}/{row['name']}",
        "id": row["id"],
        "made by": row.get("made_by"),
        "status": f"{row['status']}, {died} died" if (died := row.get("writers_died")) else row["status"],
        "seed": row.get("seed"),
        "last": last,
        "best": best,
        "attempts": row.get("attempts"),
        "begun": ago(row.get("created")),
        "took": _took(row),
        "cause": row.get("cause"),
        "tags": " ".join(row.get("tags") or ()),
    }
