"""`rollbook wait`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option, find_book, run_argument_or_last
from rollbook.cli.output import clean, number, print_json, remark

_EXIT = {"met": 0, "timeout": 3, "ended": 4}


@click.command()
@run_argument_or_last
@dir_option
@click.option("--until", required=True, help="The condition, such as 'last(\"test/return\") > 475'.")
@click.option(
    "--timeout",
    default=3600.0,
    type=click.FloatRange(min=0),
    show_default=True,
    help="Give up after this many seconds.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def wait(run: str, root: str, until: str, timeout: float, as_json: bool) -> None:
    """Wait until a condition on a run is true.

    The condition is one of `rollbook ls --where`: SQL over the fields of the run, such as status and config.lr, and
    over numbers of its keys, such as last("loss") and mean("loss", last="10%"); last also takes a clock. A key without
    a value, or with NaN, makes no comparison true.

    Exit status: 0 the condition is true, 3 the time is up, 4 the run ended and it is not true, 2 it cannot be read.

    \b
    Examples:
      rollbook wait last --until 'last("test/return") > 475' --timeout 600
      rollbook wait cartpole/ppo --until 'last("env_step") >= 1000' && echo there
    """
    from rollbook.errors import BadInput
    from rollbook.runs.waiting import wait as wait_for

    book = find_book(run, root)
    try:
        waited = wait_for(book, until, timeout=timeout)
    except BadInput as err:
        raise click.UsageError(str(err)) from None
    if as_json:
        print_json(
            {
                "outcome": waited.outcome,
                "run": book.id,
                "path": str(book.path),
                "status": waited.status,
                "values": waited.values,
                "seconds": waited.seconds,
                "hint": waited.hint,
            }
        )
    else:
        values = "".join(f", {clean(term)} is {number(value)}" for term, value in waited.values.items())
        click.echo(f"{waited.outcome}: {clean(book.project)}/{clean(book.name)} {book.id} is {waited.status}{values}")
        if waited.hint:
            remark(clean(waited.hint))
    raise SystemExit(_EXIT[waited.outcome])
