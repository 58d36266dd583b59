"""`rollbook label`."""

from __future__ import annotations

import os

import click

from rollbook.cli.output import clean, remark
from rollbook.system.files import pasted
from rollbook.system.texts import amount


@click.command()
@click.argument("pattern", required=False)
@click.argument("fields", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--remove", is_flag=True, help="Remove this pattern, or these fields of it.")
def label(pattern: str | None, fields: tuple[str, ...], remove: bool) -> None:
    """Label runs of other tools with what their files do not say: algo, env, seed, group, config.<setting>, x.

    PATTERN is the path of folders or files: * and ? match within a name, ** any number of folders, and a folder stands
    for all below it. It is written to rollbook.labels beside them, a text file that may be edited. `x` is the column
    along which a table is drawn; x=row takes the number of the row. Without PATTERN, the labels here are listed.

    \b
    Examples:
      rollbook label 'logs/*/PPO*' algo=ppo
      rollbook label logs/old seed=3 config.lr=0.001
      rollbook label 'results/*.csv' x=iteration
      rollbook label 'logs/*/PPO*' --remove
    """
    from rollbook.formats import importers

    if pattern is None:
        _list()
        return
    named_fields: dict[str, object]
    if remove:
        named_fields = dict.fromkeys([word.partition("=")[0] for word in fields] or _said_of(pattern))
    else:
        named_fields = dict(map(importers.field_of, fields))
        if not named_fields:
            raise click.UsageError("say which fields: rollbook label 'logs/*/PPO*' algo=ppo")
    file, rest = importers.label(pattern, named_fields)
    runs = _runs_of(os.path.dirname(file), rest)
    click.echo(clean(f"{amount(len(runs), 'run')} below {os.path.dirname(file)}: {', '.join(runs[:5])}".rstrip(": ")))
    if len(runs) > 5:
        remark(f"… and {len(runs) - 5:,} more")
    if not runs and not remove:
        folder = os.path.dirname(file)
        remark(f"no run has a path like {clean(rest)}: rollbook ls {pasted(folder)} lists what is there")


def _said_of(pattern: str) -> list[str]:
    """The fields that were given for a pattern."""
    from rollbook.formats import importers

    file, rest = importers.label(pattern, {})
    lines = importers.lines_in(os.path.dirname(file))
    return [name for known, fields in lines if known == rest for name in fields]


def _runs_of(folder: str, pattern: str) -> list[str]:
    """The names of the runs below a folder that a pattern of its labels matches."""
    from pathlib import Path

    from rollbook.formats import importers
    from rollbook.formats.importers._labels import matches

    walk = importers.Walk(Path(folder))
    return [one.run.name for one in walk.runs if matches(pattern, one.labelled, folder)]


def _list() -> None:
    from rollbook.formats import importers

    file = os.path.join(os.getcwd(), importers.LABELS_FILE)
    lines = importers.lines_in(os.getcwd())
    for pattern, fields in lines:
        click.echo(clean(f"{pattern}  {' '.join(f'{name}={value}' for name, value in fields.items())}"))
    if not lines:
        remark(f"there is no {clean(file)}. Say something about runs with: rollbook label 'logs/*/PPO*' algo=ppo")
