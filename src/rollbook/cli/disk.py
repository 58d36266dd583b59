"""`rollbook disk` and `rollbook rm`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option, find_runs, format_options, limit_option, runs_options
from rollbook.cli.fitted_table import print_answer
from rollbook.cli.output import ago, clean, json_option, print_json, print_rows, print_sentence, remark
from rollbook.system.texts import amount

_DAY = 86_400.0


@click.command()
@runs_options
@limit_option(40)
@format_options
def disk(runs: tuple[str, ...], root: str, where: str | None, limit: int, as_json: bool, as_csv: bool) -> None:
    """Show what takes space: each run by kind of file, the largest first.

    \b
    Examples:
      rollbook disk
      rollbook disk cartpole --where "status = 'crashed'"
    """
    from rollbook.runs.space import KINDS, in_bytes

    answer = find_runs(runs, root, where).disk()
    rows = answer.table()
    if as_json:
        print_json({"sentences": answer.sentences(), "total": answer.total, "runs": rows})
    elif as_csv:
        print_rows(rows, as_csv=True)
    else:
        sizes = ("total", *KINDS)
        shown = [
            {**row, **{name: in_bytes(float(str(row[name]))) if row[name] else "-" for name in sizes}} for row in rows
        ]
        print_answer(answer.sentences(), shown, limit=limit, names=("run", "id", "status", *sizes))


@click.command()
@click.argument("runs", metavar="[RUNS]", default="")
@dir_option
@click.option("--where", default=None, help="Condition on runs, such as \"status = 'crashed'\".")
@click.option("--yes", is_flag=True, help="Do it. Without --yes, only print what would be done.")
@click.option("--force", is_flag=True, help="Also runs that a process on another host may still be writing.")
@click.option("--bin", "as_list", is_flag=True, help="List the runs in the bin.")
@click.option("--restore", "restored", metavar="RUN", default=None, help="Bring a run back from the bin.")
@click.option("--empty", is_flag=True, help="Delete what is in the bin, for good.")
@click.option(
    "--older",
    "days",
    type=click.FloatRange(min=0),
    default=0.0,
    help="With --empty: only runs removed at least this many days ago.",
)
@json_option
def rm(
    runs: str,
    root: str,
    where: str | None,
    yes: bool,
    force: bool,
    as_list: bool,
    restored: str | None,
    empty: bool,
    days: float,
    as_json: bool,
) -> None:
    """Move runs into a bin, from which they can be restored until it is emptied. Not a run that is being written.

    Without --yes nothing is moved, only listed. The bin is the folder .bin next to the projects; it takes
    the same space until it is emptied.

    \b
    Examples:
      rollbook rm cartpole/ppo-k3v9x2ab
      rollbook rm cartpole --where "status = 'crashed'" --yes
      rollbook rm --bin
      rollbook rm --restore k3v9x2ab
      rollbook rm --empty --older 30 --yes
    """
    from rollbook.runs.removing import Bin

    if as_list or restored is not None or empty:
        _of_the_bin(Bin(root), restored, empty, days, yes, as_json)
        return
    if not runs and not where:
        raise click.UsageError("say which runs: a name, an id, a project, or --where")
    answer = find_runs(runs, root, where).remove(dry_run=not yes, force=force)
    if as_json:
        rows = [
            {name: row[name] for name in ("path", "project", "name", "id", "status", "bytes")} for row in answer.moved
        ]
        print_json(
            {"sentences": answer.sentences(), "dry_run": answer.dry_run, "runs": rows, "refused": answer.refused}
        )
    else:
        for row in answer.moved:
            click.echo(clean(f"{row['project']}/{row['name']}  {row['id']}  {row['status']}  {row['path']}"))
        for sentence in answer.sentences():
            remark(clean(sentence))
        if answer.moved:
            remark("rollbook rm --restore ID brings one back" if yes else "--yes does it")
    if yes and answer.refused and not answer.moved:
        raise click.exceptions.Exit(1)


def _of_the_bin(own: object, restored: str | None, empty: bool, days: float, yes: bool, as_json: bool) -> None:
    from rollbook.runs.removing import Bin
    from rollbook.runs.space import in_bytes

    assert isinstance(own, Bin)
    line, paths = "", []
    if restored is not None:
        paths = own.restore(restored)
        line = f"back in {', '.join(paths)}"
    entries = own.entries()
    if empty:
        gone = [entry for entry in entries if entry.removed <= _now() - days * _DAY]
        size = in_bytes(sum(entry.bytes for entry in gone))
        if yes:
            own.empty(days * _DAY)
            entries = own.entries()
        were = "were" if yes else "would be"
        line = f"{amount(len(gone), 'run')} ({size}) {were} deleted for good{'' if yes else '; --yes does it'}"
    rows = [
        {
            "run": f"{entry.project}/{entry.name}",
            "id": entry.id,
            "removed": entry.removed,
            "bytes": entry.bytes,
            "path": entry.path,
        }
        for entry in entries
    ]
    if as_json:
        print_json({"sentences": [line] if line else [], "bin": own.folder, "runs": rows})
        return
    if line:
        print_sentence(clean(line), 100)
    if not (restored or empty):
        print_rows(
            [
                {**row, "removed": ago(entry.removed), "bytes": in_bytes(entry.bytes)}
                for row, entry in zip(rows, entries, strict=True)
            ]
        )
        if not rows:
            remark(f"nothing is in {clean(own.folder)}")


def _now() -> float:
    import time

    return time.time()
