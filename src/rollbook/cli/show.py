"""`rollbook show`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from rollbook.book.questions import OURS, STATES, remarks_of
from rollbook.cli.find import dir_option, find_book, run_argument_or_last
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import ago, cell, clean, number, print_json, print_patch, print_wrapped, remark, seconds
from rollbook.schema.tables import TABLES
from rollbook.system.files import pasted
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book
    from rollbook.book.questions import Overview

_PIPE_WIDTH = 100
_MOST_LINES = 10
_OWN_TABLES = 8
"""At most this many of the tables that a program recorded itself are named."""
_LINES_OF_MESSAGE, _LINES_OF_TRACE = 4, 7


def summary(book: Book, found: Overview | None = None) -> dict[str, Any]:
    """What `show` prints, as plain data: the overview, and for a run in a remote its address."""
    from rollbook.remote.views import address_of
    from rollbook.schema.source import is_view

    about = (found or book.overview()).as_data()
    if is_view(book.path):
        url, run = address_of(book.path)
        about["remote"] = {"address": f"{url}/{run}"}
    return about


@click.command()
@run_argument_or_last
@dir_option
@click.option("--all", "everything", is_flag=True, help="Show every setting and column in full.")
@click.option("--patch", "as_patch", is_flag=True, help="Print the uncommitted changes of the program's code instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(run: str, root: str, everything: bool, as_patch: bool, as_json: bool) -> None:
    """Show what is in a run: its identity, its settings, where its time went, the last value of every key.

    \b
    Examples:
      rollbook show last
      rollbook show cartpole/ppo --all
      rollbook show last --patch
      rollbook show runs/cartpole/ppo-k3v9x2ab --json
    """
    book = find_book(run, root)
    if as_patch and not as_json:
        print_patch(book.patch(), "no uncommitted change is known: git did not answer, or there was none")
        return
    found = book.overview()
    about = summary(book, found)
    if as_json:
        print_json({**about, "patch": book.patch()} if as_patch else about)
        return
    width = 10**9 if everything else terminal_width() or _PIPE_WIDTH
    _print_identity(book, about, width, everything)
    _print_settings(about["config"], width, everything)
    _print_list("summary", (f"{clean(name)}={number(value)}" for name, value in about["summary"].items()), width)
    _print_list("time", _stages_in_words(about["seconds"], everything), width)
    _print_list("saved", _checkpoints_in_words(book, about["checkpoints"]), width)
    _print_list("writers", _writers_in_words(about["writers"]), width)
    _print_list("tables", _tables_in_words(about["tables"], everything), width)
    _print_keys(about["keys"], book.clocks, everything)
    _print_alerts(about["alerts"], everything)
    for line in _remarks(found):
        remark(line)


def _print_identity(book: Book, about: Mapping[str, Any], width: int, everything: bool) -> None:
    """Which run it is, how it went, and where it came from."""
    began, ended = about["created"], about["ended"]
    attempts = f", {about['attempts']} attempts" if about["attempts"] > 1 else ""
    title = f"{clean(about['project'])}/{clean(about['name'])}"
    click.echo(f"{click.style(title, bold=True)}  {clean(about['id'])}  {clean(about['status'])}{attempts}")
    seed = "" if about["seed"] is None else f"seed {about['seed']}, "
    took = f", took {seconds(ended - began)}" if began and ended else ""
    if about["attempts"] > 1 and took:
        took += f", at work {seconds(about['worked'])} of it"
    click.echo(f"{seed}begun {ago(began)}{took}")
    _print_failure(about["failure"], about["why"], width, everything)
    for index, line in enumerate(about["resume"]):
        click.echo(f"{'or' if index else 'go on':<9}{clean(line)}")
    if code := _code_in_words(book.info.git):
        click.echo(f"{'code':<9}{clean(code)}")
    click.echo(clean(about["remote"].get("address") or about["path"]))
    if origin := book.info.imported:
        made_by = book.info.made_by or origin.get("format")
        click.echo(clean(f"{made_by}, read from {origin.get('from')}"))
    if job := book.info.hydra:
        number_of = f" #{job['num']}" if "num" in job else ""
        overrides = " ".join(str(word) for word in job.get("overrides", ()))
        click.echo(clean(f"Hydra job {job.get('job')}{number_of} in {job.get('run_dir')} {overrides}".rstrip()))


def _code_in_words(git: object) -> str:
    """The commit of a program, and what was not committed."""
    if not isinstance(git, dict) or not git:
        return ""
    words = [f"{str(git.get('commit') or 'no commit')[:10]}{' on ' + str(git['branch']) if git.get('branch') else ''}"]
    if files := git.get("files_changed"):
        words.append(f"{amount(files, 'file')} changed (+{git.get('insertions', 0)} -{git.get('deletions', 0)})")
    if unknown := git.get("files_untracked"):
        words.append(f"{unknown:,} unknown to git")
    if git.get("patch"):
        words.append("--patch shows it")
    return ", ".join(words)


def _print_failure(failure: Mapping[str, str] | None, why: str | None, width: int, everything: bool) -> None:
    """What ended the run early, and where: the last lines of its traceback."""
    if failure is None:
        if why is not None:
            _print_list("ended", [why], width)
        return
    words = f"{failure['type']}: {failure['message']}" if failure["message"] else failure["type"]
    for index, line in enumerate(_lines(words, everything, _LINES_OF_MESSAGE)):
        click.echo(f"{'' if index else 'ended by':<9}{_cut(line, width - 9)}")
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
    for state, words in STATES.items():
        if state in counts:
            yield f"{counts[state]:,} {words}"


def _print_keys(keys: Mapping[str, Mapping[str, object]], all_clocks: Sequence[str], everything: bool) -> None:
    """A table of the last values; keys of the host and of rollbook are only counted if there are others."""
    if not keys:
        return
    click.echo()
    own = {key: row for key, row in keys.items() if not key.startswith(OURS)}
    shown = keys if everything or not own else own
    clocks = [clock for clock in all_clocks if any(clock in row for row in shown.values())]
    print_fitted(
        [{"key": key, "last": row["value"], **{c: row.get(c) for c in clocks}} for key, row in shown.items()],
        ["key", "last", *clocks],
        width=None if everything else terminal_width(),
        hint="--all and --json show all columns",
    )
    folded = keys.keys() - shown.keys()
    if counts := [f"{n} of {scope}" for scope in OURS if (n := sum(key.startswith(scope) for key in folded))]:
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


def _remarks(found: Overview) -> Iterator[str]:
    """What is not in the run's remote yet, what was lost or left out, and what is damaged."""
    remote = found.remote
    if remote.get("url"):
        words = f": {clean(remote['words'])}" if remote.get("words") else ""
        yield f"remote: {clean(remote['url'])}: {_shipped_in_words(remote)}{words}"
    yield from map(clean, remarks_of(found.drops, found.remarks, found.reports, found.retention, found.problems))
    failed = found.keys.get("rollbook/rules/failures", {}).get("value")
    if isinstance(failed, (int, float)) and failed > 0:  # else "no alert" would look like "all is well"
        yield (
            f"health rules: {amount(int(failed), 'look')} failed or took too long while it was recorded; to ask them "
            f"now: rollbook check {pasted(found.id)}"
        )


def _shipped_in_words(remote: Mapping[str, Any]) -> str:
    if not remote.get("waiting_files"):
        return "all is there" if remote.get("done") else "nothing has gone yet"
    since = f", since {ago(remote.get('since'))}" if remote.get("since") else ""
    return f"waiting here: {amount(remote['waiting_files'], 'file')} ({remote['waiting_bytes']:,} bytes){since}"


def _tables_in_words(tables: Mapping[str, int], everything: bool) -> list[str]:
    """The tables with their rows; of many that a program recorded itself (one an iteration), the first."""
    own = [name for name in tables if name not in TABLES]
    few = own if everything or len(own) <= _OWN_TABLES else own[: _OWN_TABLES - 1]
    words = [f"{clean(name)} {rows:,}" for name, rows in tables.items() if name in TABLES or name in few]
    return words if len(few) == len(own) else [*words, f"{len(own) - len(few):,} more"]


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
    from rollbook.runs.fields import flat

    pairs = [(clean(name), cell(f"config.{name}", value)) for name, value in flat(config).items()]
    if not pairs:
        return
    room = 10**9 if everything else max(width - 9, 12)
    for columns in (1,) if everything else (4, 3, 2, 1):
        lines = -(-len(pairs) // columns)
        blocks = [_block(pairs[first : first + lines], room) for first in range(0, len(pairs), lines)]
        if sum(len(block[0]) for block in blocks) + 3 * (len(blocks) - 1) <= room:
            break
    shown = lines if everything or lines <= _MOST_LINES + 1 else _MOST_LINES
    for index in range(shown):
        line = "   ".join(block[index] for block in blocks if index < len(block))
        click.echo(f"{'' if index else 'config':<9}{line}".rstrip())
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
