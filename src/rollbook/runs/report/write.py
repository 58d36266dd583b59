"""The contents of a report: for one run its identity, curves and alerts; for a group the verdict, table and charts."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from rollbook.book import Book
from rollbook.runs.absent import empty_set
from rollbook.runs.comparing import MOST_GROUPS
from rollbook.runs.questions import Fields
from rollbook.runs.report.page import Page
from rollbook.runs.run_set import RunSet
from rollbook.runs.source import Files
from rollbook.runs.usual_score import usual_score
from rollbook.system.texts import amount, setting_text

__all__ = ["write"]

_CANONICAL = ("test/return", "train/return", "train/length", "update/loss/policy", "update/loss/value")
_CHARTS = {
    "episodes": ("episodes", "episodes"),
    "stages": ("timings", "time per stage"),
    "rewards": ("rewards", "reward components"),
    "novelty": ("samples", "new samples"),
}
_MOST_RUNS = 200
_MOST_ALERTS = 50


def write(
    what: Book | RunSet,
    path: str | os.PathLike[str],
    *,
    metric: str | Sequence[str] | None = None,
    by: Fields | None = "auto",
    x: str | None = None,
    **comparison: object,
) -> str:
    """Write one self-contained page about a run or several; returns the path.

    Args:
      what: a book, or a run set.
      path: of the page.
      metric: one key or several; None takes the score that the runs have, as `compare` does; the page names it.
      by: the fields whose values are compared, or "auto", what differs in the configuration; None compares nothing.
      x: the axis of curves.
      comparison: further arguments of `RunSet.compare`: score, plan, delta, floor, task, normalise.
    Raises:
      BadInput: an empty set, or no metric that can be shown.
      OSError: the file cannot be written.
    """
    keys = [metric] if isinstance(metric, str) else list(metric or ())
    if isinstance(what, Book):
        page = _run(what, keys, x)
    else:
        if not len(what):
            raise empty_set("report", what.root)
        page = _group(what, keys, by, x, comparison)
    folder = os.path.dirname(os.fspath(path))
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(page.html())
    return os.fspath(path)


def _run(book: Book, keys: list[str], x: str | None) -> Page:
    info = book.info
    page = Page(f"{book.project}/{book.name}")
    seed = "no seed" if book.seed is None else f"seed {book.seed}"
    page.text(f"{book.status}; id {book.id}; {seed}; begun {_when(info.created)}; written {_when()}.")
    keys = keys or _shown_keys(book)
    for key in keys:
        page.text(key, "h2")
        page.picture(book.plot(key, x=x))
    for chart, (table, head) in _CHARTS.items():
        if book.table(table).num_rows:
            page.text(head, "h2")
            page.picture(book.plot(chart=chart))
    alerts = book.alerts()
    if alerts.num_rows:
        page.text("alerts", "h2")
        names = [name for name in ("rule", "level", "message") if name in alerts.column_names]
        page.table(alerts.select(names).slice(0, _MOST_ALERTS).to_pylist())
    page.text("summary and configuration", "h2")
    page.table([{"name": name, "value": _word(value)} for name, value in _flat(dict(book.summary), "summary")])
    page.table([{"name": name, "value": setting_text(value)} for name, value in _flat(book.config, "config")])
    page.text("where it came from", "h2")
    git = info.git or {}
    facts = {
        "host": info.host,
        "python": info.python,
        "rollbook": info.rollbook or None,
        "commit": git.get("commit"),
        "dirty": git.get("dirty"),
        "attempts": len(book.attempts),
    }
    page.table([{"name": name, "value": _word(value)} for name, value in facts.items() if value is not None])
    return page


def _group(runs: RunSet, keys: list[str], by: Fields | None, x: str | None, comparison: dict[str, Any]) -> Page:
    projects = ", ".join(dict.fromkeys(str(row["project"]) for row in runs.rows()))
    page = Page(f"{projects}: {amount(len(runs), 'run')}")
    page.text(f"Written {_when()}.")
    if not keys:
        usual = usual_score(Files(runs.rows(), runs.root), runs.rows(), "report")
        page.text(usual.remark)
        keys = [usual.values["metric"]]
    for key in keys:
        _metric(page, runs, key, by, x, comparison)
    page.text("runs", "h2")
    shown = runs.newest(_MOST_RUNS)
    columns = ["id", "name", "status", "seed", *_different(runs)]
    page.table(shown.table(columns, dict.fromkeys(keys, "last")).to_pylist())
    if len(runs) > _MOST_RUNS:
        page.text(f"{len(runs) - _MOST_RUNS} older runs are not listed.")
    page.text("what differs", "h2")
    differences = runs.diff(keys[0])
    page.table(
        [
            {
                "name": row["name"],
                "value": row["value"],
                "runs": row["n"],
                f"mean {keys[0]}": row["mean"],
                "explained": row["explained"],
            }
            for row in differences.table().to_pylist()[:60]
        ]
    )
    if not len(differences):
        page.text("Nothing differs in configuration, code, packages or machine.")
    return page


def _metric(page: Page, runs: RunSet, key: str, by: Fields | None, x: str | None, comparison: dict[str, Any]) -> None:
    """The verdicts about a metric, if groups are compared, and its charts."""
    page.text(key, "h2")
    options: dict[str, Any] = {name: comparison[name] for name in ("task", "normalise") if name in comparison}
    if by is None or not 1 < len(runs.group_by(by)) <= MOST_GROUPS:
        curves = runs.curves(key, by=by, x=x, **options)
        page.sentences(curves.sentences())
        page.picture(curves.plot())
    else:
        answer = runs.compare(key, by, x=x, **comparison)
        page.sentences(answer.before())
        for sentence in answer.verdicts():
            page.text(sentence, "verdict")
        page.sentences(answer.after())
        page.table(answer.table())
        options["statistic"] = answer.statistic
        curves = runs.curves(key, by=by, x=x, **options)
        page.picture(curves.plot())
        for chart in ("intervals", "profiles", *(["improvement"] if answer.pairs else [])):
            page.picture(answer.plot(chart))
    if all(group.tasks == 1 for group in curves.groups):
        page.picture(curves.reached().plot())


def _different(runs: RunSet) -> list[str]:
    """The first few settings that differ between the runs."""
    names = [each.name for each in runs.diff(kinds=["config"])]
    return names[:6]


def _shown_keys(book: Book) -> list[str]:
    known = {*book.keys(), *book.canonical()}
    there = [key for key in _CANONICAL if key in known]
    others = [key for key in sorted(known) if not key.startswith(("host/", "rollbook/"))]
    return there or others[:4]


def _flat(values: dict[str, object], prefix: str) -> list[tuple[str, object]]:
    from rollbook.runs.fields import flat

    return list(flat(values, f"{prefix}.").items())[:200]


def _word(value: object) -> object:
    return value if isinstance(value, (int, float, str, type(None))) else str(value)


def _when(moment: object = None) -> str:
    seconds = moment if isinstance(moment, (int, float)) else time.time()
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
