"""`rollbook rollouts`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option, find_book, format_options, limit_option, run_argument_or_last
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import in_microseconds, print_arrow, remark
from rollbook.schema.solved import RULE, number_in

_EMPTY = {
    "fates": "every rollout is of an evaluation",
    "prompts": "no rollout was logged with its prompt",
    "groups": "of each group with a fate, at least one rollout was trained on with an advantage other than 0",
    "staleness": "no fate was reported with its staleness: trained(…, trained_version=…)",
    "gaps": "no fate has its gap: trained(…, trainer_logprobs=…) of turns with logprobs, or trained(…, gap_max=…)",
    "tokens": "no tokens have log-probabilities of both: turn(…, logprobs=…), trained(…, trainer_logprobs=…)",
    "tools": "no turn has the role tool",
    "time": "no rollout was logged with its seconds: in the model, in tools, for the reward, in a queue",
    "words": "no word is twice as frequent in the answers of the highest advantages as in those of the lowest",
    "lost": "every rollout has a fate",
}
"""Question -> why its answer may be empty."""
_WIDE = {"prompts": "prompt", "tools": "error"}
"""Question -> the column of long texts."""


@click.command()
@run_argument_or_last
@click.argument("question", default="fates")
@click.option("--id", "rollout_id", metavar="ROLLOUT", help="For history: one rollout of the prompt.")
@limit_option(20)
@click.option("--solved", metavar="REWARD", help="For prompts: a reward above this is solved; or a condition.")
@dir_option
@format_options
def rollouts(
    run: str, question: str, rollout_id: str | None, limit: int, solved: str | None, root: str, as_json: bool,
    as_csv: bool,
) -> None:  # fmt: skip
    """Answer a question about the rollouts of a run; the worst comes first.

    QUESTION is fates, history, prompts, groups, staleness, gaps, tokens, tools, time, words or lost.

    \b
    Examples:
      rollbook rollouts last                       what became of them
      rollbook rollouts last prompts               which prompt is never solved
      rollbook rollouts last prompts --solved 0.9  solved: a reward above 0.9
      rollbook rollouts last tools --json          which tool breaks
      rollbook rollouts last history --id 09ab-7   this prompt over training
    """
    from rollbook.book import RolloutQueries

    if run in RolloutQueries.QUESTIONS and question == "fates":  # only a question: about the last run
        run, question = "last", run
    book = find_book(run, root, lambda book: book.row_count("rollouts") > 0, "rollouts")
    if question == "history" and rollout_id is None:
        raise click.UsageError("history is about one prompt: --id ROLLOUT, the id of one of its rollouts")
    answer = book.rollout_answer(question, rollout_id=rollout_id, limit=limit + 1, solved=solved)
    if question == "prompts" and answer.num_rows:
        remark(_solved(book.solved_above() if solved is None else None, solved))
    shown = answer.slice(0, limit)
    if as_json or as_csv:
        print_arrow(shown, as_json=as_json, as_csv=as_csv)
    else:
        remark(RolloutQueries.QUESTIONS[question])
        if shown.num_rows or question not in _EMPTY:
            wide = _WIDE.get(question, "")
            print_fitted(in_microseconds(shown).to_pylist(), shown.column_names, wide=wide, width=terminal_width())
        elif book.row_count("rollouts"):
            remark(f"nothing to list: {_EMPTY[question]}")
        else:
            remark("nothing to list: the run has no rollouts. `run.rollouts` records them")
    if answer.num_rows > limit:
        remark(f"only the first {limit:,} rows; --limit shows more")


def _solved(above: float | None, given: str | None) -> str:
    """What counts as solved, for people."""
    if given is not None:
        return f"solved: {given if number_in(given) is None else f'a reward above {given}'}"
    if above is None:
        return "solved: none, there is no reward"
    return f"solved: a reward above {above:g} ({RULE}; --solved sets it)"
