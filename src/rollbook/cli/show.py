"""`rollbook show`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from rollbook.cli.find import dir_option, find_book, run_argument_or_last
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import ago, cell, clean, number, print_json, print_wrapped, remark, seconds
from rollbook.schema.run_files import RunFile
from rollbook.system.files import read_json
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book

_PIPE_WIDTH = 100
_MOST_LINES = 10
_OURS = ("host/", "rollbook/")
_LINES_OF_MESSAGE, _LINES_OF_TRACE = 4, 7
_STATES = {"closed": "closed", "writing": "still writing", "died": "died", "unknown": "cannot be judged from here"}


def summary(book: Book) -> dict[str, Any]:
    """What `show` prints, as plain data."""
    info = book.info
    latest = book.latest()
    return {
        "path": str(book.path),
        "project": book.project,
        "name": book.name,
        "id": book.id,
        "status": book.status,
        "failure": book.failure,
        "seed": book.seed,
        "attempts": len(book.attempts),
        "created": info.get("created"),
        "ended": info.get("ended"),
        "config": dict(book.config),
        "summary": dict(book.summary),
        "writers": _writers(book),
        "seconds": _stages(book),
        "checkpoints": _checkpoints(book),
        "tables": book.table_rows(),
        "keys": {
            key: {"value": value, **clocks}
            for key, (value, clocks, _time) in sorted(latest.items(), key=lambda item: _rank(item[0]))
        },
        "alerts": _alerts(book),
        "drops": info["drops"],
        "remarks": info.get("remarks") or {},
        "retention": info.get("retention") or {},
        "silent_sinks": {
            name: str(trouble.get("words"))
            for name, trouble in read_json(book.path / RunFile.KEEPER / RunFile.TROUBLES).items()
            if isinstance(trouble, dict)
        },
        "remote": _remote(book),
        "problems": book.problems(deep=False),
    }


def _remote(book: Book) -> dict[str, object]:
    """Where it is shipped to, or stored, and how much of it."""
    from rollbook.remote.views import address_of
    from rollbook.schema.addresses import backlog
    from rollbook.schema.source import is_view

    if is_view(book.path):
        url, run = address_of(book.path)
        return {"address": f"{url}/{run}"}
    state = backlog(book.path)
    return {} if state is None else {"url": str(book.info.get("remote") or ""), **state}


def _writers(book: Book) -> dict[str, int]:
    """How many processes wrote, by their final state, and on how many hosts."""
    writers = book.writers
    states = [writer["state"] for writer in writers]
    counted = {state: states.count(state) for state in _STATES if state in states}
    return {"all": len(writers), "hosts": len({writer["host"] for writer in writers}), **counted}


def _stages(book: Book) -> dict[str, float]:
    """Seconds in each stage, the longest first; nested stages as a/b."""
    spent = book.sql("select name, sum(seconds) from timings group by name order by 2 desc").fetchall()
    return {str(name): float(took) for name, took in spent if took is not None}


def _checkpoints(book: Book) -> dict[str, object]:
    """How many checkpoints are still there, and which are the best and the last."""
    from rollbook.errors import UnknownKey

    answer: dict[str, object] = {}
    present = len(book.checkpoint_history().kept)
    for which in ("best", "last") if present else ():
        try:
            saved = book.checkpoint(which)
        except UnknownKey:  # none has a score, or all files are gone
            continue
        answer[which] = {"id": saved.id, "path": str(saved.path), "score": saved.score, **saved.clocks}
    return {"kept": present, **answer} if present else {}


def _alerts(book: Book) -> list[dict[str, object]]:
    """What was found wrong, oldest first."""
    return [
        {
            **{name: row.get(name) for name in ("rule", "level", "message", "key", "source")},
            **{clock: row[clock] for clock in book.clocks if row.get(clock) is not None},
        }
        for row in book.alerts().drop_columns(["time"]).to_pylist()
    ]


def _rank(key: str) -> tuple[bool, str]:
    """Sort key: logged keys first, host and rollbook keys last; by name within each."""
    return key.startswith(_OURS), key


@click.command()
@run_argument_or_last
@dir_option
@click.option("--all", "everything", is_flag=True, help="Whole values, all settings and all columns, however wide.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(run: str, root: str, everything: bool, as_json: bool) -> None:
    """Show what is in a run: its identity, its settings, where its time went, the last value of every key.

    \b
    Examples:
      rollbook show last
      rollbook show cartpole/ppo --all
      rollbook show runs/cartpole/ppo-k3v9x2ab --json
    """
    book = find_book(run, root)
    about = summary(book)
    if as_json:
        print_json(about)
        return
    width = 10**9 if everything else terminal_width() or _PIPE_WIDTH
    _print_identity(book, about, width, everything)
    _print_settings(about["config"], width, everything)
    _print_list("summary", (f"{clean(name)}={number(value)}" for name, value in about["summary"].items()), width)
    _print_list("time", _stages_in_words(about["seconds"], everything), width)
    _print_list("saved", _checkpoints_in_words(book, about["checkpoints"]), width)
    _print_list("writers", _writers_in_words(about["writers"]), width)
    _print_list("tables", (f"{name} {rows:,}" for name, rows in about["tables"].items()), width)
    _print_keys(about["keys"], book.clocks, everything)
    _print_alerts(about["alerts"], everything)
    for line in _remarks(about):
        remark(line)


def _print_identity(book: Book, about: Mapping[str, Any], width: int, everything: bool) -> None:
    """Which run it is, how it went, and where it came from."""
    began, ended = about["created"], about["ended"]
    attempts = f", {about['attempts']} attempts" if about["attempts"] > 1 else ""
    title = f"{clean(about['project'])}/{clean(about['name'])}"
    click.echo(f"{click.style(title, bold=True)}  {clean(about['id'])}  {clean(about['status'])}{attempts}")
    seed = "" if about["seed"] is None else f"seed {about['seed']}, "
    took = f", took {seconds(ended - began)}" if began and ended else ""
    click.echo(f"{seed}begun {ago(began)}{took}")
    _print_failure(about["failure"], about["status"], width, everything)
    click.echo(clean(about["remote"].get("address") or about["path"]))
    if isinstance(origin := book.info.get("imported"), dict):
        made_by = book.info.get("made_by") or origin.get("format")
        click.echo(clean(f"{made_by}, read from {origin.get('from')}"))
    job: Any = book.info.get("hydra")
    if isinstance(job, dict):
        number_of = f" #{job['num']}" if "num" in job else ""
        overrides = " ".join(str(word) for word in job.get("overrides", ()))
        click.echo(clean(f"Hydra job {job.get('job')}{number_of} in {job.get('run_dir')} {overrides}".rstrip()))


def _print_failure(failure: Mapping[str, str] | None, status: str, width: int, everything: bool) -> None:
    """What ended the run early, and where: the last lines of its traceback."""
    if failure is None:
        if status == "crashed":
            _print_list("ended", ["no exception was seen: its process vanished (SIGKILL, out of memory, power)"], width)
        return
    words = f"{failure['type']}: {failure['message']}" if failure["message"] else failure["type"]
    for place, line in enumerate(_lines(words, everything, _LINES_OF_MESSAGE)):
        click.echo(f"{'' if place else 'ended by':<9}{_cut(line, width - 9)}")
    trace = failure["traceback"].splitlines()
    last = next((n for n in range(len(trace) - 1, -1, -1) if trace[n].startswith("  ")), -1)  # the message is above
    for text in ("\n".join(trace if everything else trace[: last + 1]), failure["stderr"]):
        for line in _lines(text, everything, _LINES_OF_TRACE, from_the_end=True):
            click.echo(f"{'':9}{_cut(line, width - 9)}")


def _lines(text: str, everything: bool, most: int, *, from_the_end: bool = False) -> list[str]:
    """A text as lines safe for a terminal, the first or the last of them; says how many were left out."""
    lines = [clean(line) for line in text.splitlines()]
    if everything or len(lines) <= most:
        return lines
    hint = f"… {len(lines) - most + 1:,} lines more: --all shows them"
    return [hint, *lines[1 - most :]] if from_the_end else [*lines[: most - 1], hint]


def _stages_in_words(took: Mapping[str, float], everything: bool) -> Iterator[str]:
    """The time of each stage and its share; without `everything` not the nested ones."""
    whole = sum(spent for name, spent in took.items() if "/" not in name)
    of = " of what was measured"  # `rollbook watch` shows shares of all time, with the rest as "other"
    for name, spent in took.items() if whole else ():
        if everything or "/" not in name:
            yield f"{clean(name)} {seconds(spent)} ({spent / whole:.0%}{of})"
            of = ""


def _checkpoints_in_words(book: Book, saved: Mapping[str, Any]) -> Iterator[str]:
    if not saved:
        return
    kept, *named = saved.items()
    yield f"{kept[1]:,} kept"
    if len(named) == 2 and saved["best"]["id"] == saved["last"]["id"]:
        named = [("best and last", saved["best"])]
    for which, row in named:
        yield _checkpoint(book, which, row)


def _checkpoint(book: Book, which: str, row: Mapping[str, object]) -> str:
    """A checkpoint in a few words: best ckpt/ckpt_best.pth.tar (score 500 at env_step 100,352)."""
    facts = [f"score {number(row['score'])}"] if row["score"] is not None else []
    facts += [f"{clock} {row[clock]:,}" for clock in book.clocks if clock in row][:1]
    inside = f"{book.path}/"
    return f"{which} {clean(row['path']).removeprefix(inside)}" + (f" ({', '.join(facts)})" if facts else "")


def _writers_in_words(counts: Mapping[str, int]) -> Iterator[str]:
    """How many writers there are and in which state; nothing if there is only one."""
    if counts["all"] < 2:
        return
    yield f"{counts['all']:,} on {amount(counts['hosts'], 'host')}"
    for state, words in _STATES.items():
        if state in counts:
            yield f"{counts[state]:,} {words}"


def _print_keys(keys: Mapping[str, Mapping[str, object]], all_clocks: Sequence[str], everything: bool) -> None:
    """A table of the last values; keys of the host and of rollbook are only counted if there are others."""
    if not keys:
        return
    click.echo()
    own = {key: row for key, row in keys.items() if not key.startswith(_OURS)}
    shown = keys if everything or not own else own
    clocks = [clock for clock in all_clocks if any(clock in row for row in shown.values())]
    print_fitted(
        [{"key": key, "last": row["value"], **{c: row.get(c) for c in clocks}} for key, row in shown.items()],
        ["key", "last", *clocks],
        width=None if everything else terminal_width(),
        hint="--all and --json show all columns",
    )
    folded = keys.keys() - shown.keys()
    if counts := [f"{n} of {scope}" for scope in _OURS if (n := sum(key.startswith(scope) for key in folded))]:
        click.echo(f"… and {' and '.join(counts)}: --all shows them")


def _print_alerts(alerts: Sequence[Mapping[str, object]], everything: bool) -> None:
    if not alerts:
        return
    click.echo()
    shown = alerts if everything else alerts[-_MOST_LINES:]
    if len(shown) < len(alerts):
        click.echo(f"{amount(len(alerts) - len(shown), 'alert')} before these: --all shows them")
    for alert in shown:
        line = f"alert    {clean(alert['level'])}, {clean(alert['rule'])}: {clean(alert['message'])}"
        print_wrapped(line, subsequent_indent=" " * 9)


def _remarks(about: Mapping[str, Any]) -> Iterator[str]:
    """What is not in the run's remote yet, what was lost or left out, and what is damaged."""
    from rollbook.book import Retention

    remote = about["remote"]
    if remote.get("url"):
        words = f": {clean(remote['words'])}" if remote.get("words") else ""
        yield f"remote: {clean(remote['url'])}: {_shipped_in_words(remote)}{words}"
    for cause, n in about["drops"].items():
        if sum(problem.n for problem in about["problems"] if problem.kind == cause) < n:  # else it is said below
            yield f"{cause}: {n:,}"
    for cause, n in about["remarks"].items():
        yield f"{cause}: {n:,}; nothing was lost"
    if trimmed := Retention.words(about["retention"]):
        yield f"rollouts: {trimmed}"
    for problem in about["problems"]:
        yield f"problem: {clean(problem)}"


def _shipped_in_words(remote: Mapping[str, Any]) -> str:
    if not remote.get("waiting_files"):
        return "all is there" if remote.get("done") else "nothing has gone yet"
    since = f", since {ago(remote.get('since'))}" if remote.get("since") else ""
    return f"waiting here: {amount(remote['waiting_files'], 'file')} ({remote['waiting_bytes']:,} bytes){since}"


def _print_list(title: str, parts: Iterable[str], width: int) -> None:
    """Words after a title, separated by commas, in as many lines as needed; nothing if there are none."""
    lines, room = [""], max(width - 9, 20)
    for part in (_cut(part, room) for part in parts):
        if lines[-1] and len(lines[-1]) + 2 + len(part) + 1 > room:
            lines[-1] += ","
            lines.append("")
        lines[-1] += (", " if lines[-1] else "") + part
    if lines[0]:
        click.echo(f"{title:<9}" + f"\n{'':9}".join(lines))


def _print_settings(config: Mapping[str, object], width: int, everything: bool) -> None:
    """A configuration as pairs, nested ones by dotted names, in as many columns as fit."""
    from rollbook.runs.fields import leaves

    pairs = [(clean(name.partition(".")[2]), cell(name, value)) for name, value in leaves(config, "config")]
    if not pairs:
        return
    room = 10**9 if everything else max(width - 9, 12)
    for columns in (1,) if everything else (4, 3, 2, 1):
        lines = -(-len(pairs) // columns)
        blocks = [_block(pairs[first : first + lines], room) for first in range(0, len(pairs), lines)]
        if sum(len(block[0]) for block in blocks) + 3 * (len(blocks) - 1) <= room:
            break
    shown = lines if everything or lines <= _MOST_LINES + 1 else _MOST_LINES
    for place in range(shown):
        line = "   ".join(block[place] for block in blocks if place < len(block))
        click.echo(f"{'' if place else 'config':<9}{line}".rstrip())
    if shown < lines:
        left_out = len(pairs) - sum(len(block[:shown]) for block in blocks)
        click.echo(f"{'':9}… and {left_out:,} settings more: --all shows them")


def _block(pairs: Sequence[tuple[str, str]], room: int) -> list[str]:
    """Names and values below each other, all of one width, at most `room`."""
    names = min(max(len(name) for name, _value in pairs), room // 2)
    values = min(max(len(value) for _name, value in pairs), room - names - 2)
    return [f"{_cut(name, names):<{names}}  {_cut(value, values):<{values}}" for name, value in pairs]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
