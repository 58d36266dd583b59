"""`rollbook import`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option
from rollbook.cli.forward import option_of
from rollbook.cli.output import clean, json_option, print_choices, print_json, remark
from rollbook.system.texts import amount


@click.command("import")
@click.argument("source", type=click.Path(exists=True), required=False)
@dir_option
@click.option("--format", "format_", metavar="NAME", help="Importer to use (default: detected from the files).")
@click.option("--project", help="The project of the runs (default: the name of the source).")
@click.option("--name", help="Run name; a prefix of their names if there are several.")
@click.option(
    "-O", "--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the importer (JSON or text)."
)
@click.option("--formats", is_flag=True, help="List the importers instead.")
@json_option
def import_(
    source: str | None,
    root: str,
    format_: str | None,
    project: str | None,
    name: str | None,
    options: tuple[str, ...],
    formats: bool,
    as_json: bool,
) -> None:
    """Bring runs that another tool wrote into a folder of runs.

    Every value keeps its own step and time. Repeat the command after an interruption, or to import what is new.

    \b
    Examples:
      rollbook import logs/            event files, CSV files, what is there
      rollbook import logs/progress.csv -O clock=iterations=gradient_step
      rollbook import tb/ --format tensorboard -O clock=env_step
      rollbook import --formats        what can be read
    """
    from rollbook.formats import importers

    if formats:
        print_choices("format", {known: importers.summary(known) for known in importers.names()}, as_json=as_json)
        return
    if source is None:
        raise click.UsageError("say what to bring in: a file or a folder. rollbook import --formats lists what is read")
    given = dict(option_of(text) for text in options)
    left: list[str] = []
    runs = importers.import_runs(source, format_, dir=root, project=project, name=name, left=left, **given)
    for sentence in left:
        remark(f"left out: {clean(sentence)}")
    if as_json:
        print_json([{"folder": str(run.folder), "rows": run.rows, "left_out": run.left_out} for run in runs])
        return
    for run in runs:
        click.echo(clean(run.folder))
        remark(amount(run.rows, "row") if run.rows else "nothing new")
        for what, n in run.left_out.items():
            remark(f"left out, {n:,} x: {clean(what)}")
