"""`rollbook novelty`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.book.questions import Novelty
from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_book, format_options, run_argument_or_last
from rollbook.cli.output import print_arrow, remark


@click.command()
@run_argument_or_last
@dir_option
@asks(Novelty, short={"x": "-x"}, defaults={"points": 20})
@format_options
def novelty(run: str, root: str, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Count the new samples of a run over training, and those that had been seen before.

    \b
    Examples:
      rollbook novelty last
      rollbook novelty last -x batch --points 50 --csv
    """
    book = find_book(run, root, lambda book: book.row_count("samples") > 0, "samples")
    table = book.novelty(**options)
    print_arrow(table, as_json=as_json, as_csv=as_csv)
    if not table.num_rows:
        remark("the samples of this run do not record whether they are new; run.log_samples does that")
