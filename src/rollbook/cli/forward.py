"""`rollbook forward`."""

from __future__ import annotations

import json

import click

from rollbook.cli.find import dir_option, find_folder, run_argument
from rollbook.cli.output import json_option, print_json, remark
from rollbook.system.texts import amount


@click.command()
@run_argument
@dir_option
@click.option("--to", "sink", required=True, help="The sink: csv, jsonl, tensorboard, wandb, mlflow, …")
@click.option(
    "-O", "--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the sink (JSON or text)."
)
@json_option
def forward(run: str, root: str, sink: str, options: tuple[str, ...], as_json: bool) -> None:
    """Replay a run into any sink, from its first row.

    \b
    Examples:
      rollbook forward last --to tensorboard
      rollbook forward cartpole/ppo --to wandb -O project=mine -O mode=offline
    """
    from rollbook.errors import RollbookError
    from rollbook.keeper.replaying import replay

    folder, asked = find_folder(run, root), dict(option_of(text) for text in options)
    try:
        rows = replay(folder, sink, asked)
    except (RollbookError, OSError, ImportError):
        raise
    except Exception as err:  # a service's own, such as wandb's without a login
        raise click.ClickException(
            f"{sink} did not take the rows: {type(err).__name__}: {err}\n"
            f"The run is unchanged. When {sink} works (login, network, options), the same command sends all rows."
        ) from None
    remark(f"{amount(rows, 'row')} to {sink}")
    if as_json:
        print_json({"sink": sink, "rows": rows})


def option_of(text: str) -> tuple[str, object]:
    """One `-O NAME=VALUE`; the value is parsed as JSON if possible, else text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"-O {text}: write NAME=VALUE, such as -O mode=offline")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
