"""`rollbook unused`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.book.questions import Unused
from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_book, format_options, run_argument_or_last
from rollbook.cli.output import print_arrow, print_rows, remark


@click.command()
@run_argument_or_last
@dir_option
@asks(Unused, short={"x": "-x"})
@format_options
def unused(run: str, root: str, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Say which groups of samples of a batch a run was not trained on, and why.

    A program says why in a column of the samples, such as `discard_reason`; without one, a group whose rewards are all
    equal taught nothing.

    \b
    Examples:
      rollbook unused last                  of the last batch
      rollbook unused last --at 1200 -x env_step
    """
    book = find_book(run, root, lambda book: book.row_count("samples") > 0, "samples")
    table = book.unused(**options)
    if as_json or as_csv:
        print_arrow(table, as_json=as_json, as_csv=as_csv)
    elif table.num_rows:
        print_rows([{name: cell for name, cell in row.items() if name != "ids"} for row in table.to_pylist()])
    else:
        remark("the samples of this run are in no groups: the column `group` of run.log_samples")
