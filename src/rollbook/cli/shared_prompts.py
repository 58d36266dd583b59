"""`rollbook shared-prompts`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_book, format_options
from rollbook.cli.fitted_table import print_answer
from rollbook.cli.output import print_json, print_rows
from rollbook.runs.questions import SharedPrompts
from rollbook.runs.shared_prompts import of_books


@click.command("shared-prompts")
@click.argument("run")
@click.argument("other")
@dir_option
@asks(SharedPrompts, arguments=("run", "other"), defaults={"limit": 20})
@format_options
def shared_prompts(run: str, other: str, root: str, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Set two runs side by side on the prompts that both have: where the OTHER one is worse, and where better.

    \b
    Examples:
      rollbook shared-prompts grpo-1 grpo-2
      rollbook shared-prompts grpo-1 grpo-2 --part accuracy --json
    """
    one, two = (find_book(word, root, lambda book: book.row_count("rollouts") > 0, "rollouts") for word in (run, other))
    answer = of_books(SharedPrompts(run=run, other=other, **options), one, two)
    rows = answer.table()
    if as_json:
        print_json({"sentences": answer.sentences(), **answer.as_data(), "prompts": rows})
        return
    if as_csv:
        print_rows(rows, as_csv=True)
        return
    print_answer(answer.sentences(), rows, names=("gain", "mean", "mean_other", "n", "n_other", "prompt"))
