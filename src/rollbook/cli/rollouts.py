"""`rollbook rollouts`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option, find_book, format_options, run_argument_or_last
from rollbook.cli.output import print_arrow, remark


@click.command()
@run_argument_or_last
@click.argument("question", default="fates")
@click.option("--id", "rollout_id", metavar="ROLLOUT", help="For history: one rollout of the prompt.")
@click.option("--limit", default=20, type=click.IntRange(min=1), show_default=True, help="How many rows at most.")
@dir_option
@format_options
def rollouts(
    run: str, question: str, rollout_id: str | None, limit: int, root: str, as_json: bool, as_csv: bool
) -> None:
    """Answer a question about the rollouts of a run; the worst comes first.

    QUESTION is fates, history, prompts, groups, staleness, gaps, tokens, tools, time, words or lost.

    \b
    Examples:
      rollbook rollouts last                       what became of them
      rollbook rollouts last prompts               which prompt is never solved
      rollbook rollouts last tools --json          which tool breaks
      rollbook rollouts last history --id 09ab-7   this prompt over training
    """
    from rollbook.book import RolloutQueries

    if run in RolloutQueries.QUESTIONS and question == "fates":  # only a question: about the last run
        run, question = "last", run
    book = find_book(run, root, lambda book: book.row_count("rollouts") > 0, "rollouts")
    answer = book.rollout_answer(question, rollout_id=rollout_id, limit=limit + 1)
    if not (as_json or as_csv):
        remark(RolloutQueries.QUESTIONS[question])
    print_arrow(answer.slice(0, limit), as_json=as_json, as_csv=as_csv)
    if answer.num_rows > limit:
        remark(f"only the first {limit:,} rows; --limit shows more")
