"""`rollbook rollouts`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from rollbook.book.questions import Prompts, RolloutAnswer, RolloutCurves, Rollouts
from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_book, format_options, run_argument_or_last
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import in_microseconds, print_arrow, remark
from rollbook.schema.question import Question, options
from rollbook.schema.solved import RULE, number_in
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa

    from rollbook.book import Book

F = TypeVar("F", bound=Callable[..., Any])

_EMPTY = {
    "fates": "every rollout is of an evaluation",
    "curves": "every rollout is of an evaluation",
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
_WIDE = {"list": "item", "prompts": "prompt", "tools": "error"}
"""Question -> the column of long texts."""


_LIST = "list"
_QUESTIONS: dict[str, type[Question]] = {_LIST: Rollouts, "prompts": Prompts, "curves": RolloutCurves}
"""What has options of its own; all else is a `RolloutAnswer`."""
_PLAIN = ("status", "reward", "used", "reason", "advantage", "staleness", "gradient_step", "prompt", "item")
_OF_GROUPS = ("group_n", "group_marks", "group_mean", "group_spread", "group_stale", "group_turns", "group_tokens")


def _options(command: F) -> F:
    """The options of all questions, each once; they are None unless they are given."""
    rest = [option.name for option in options(RolloutAnswer) if option.name != "limit"]
    command = asks(RolloutAnswer, arguments=rest, defaults={"limit": 20})(command)
    seen = {"question", "limit"}
    each: tuple[type[Question], ...] = (*_QUESTIONS.values(), RolloutAnswer)
    for question in each:
        names = [option.name for option in options(question)]
        for name in (one for one in names if one not in seen):
            others = [other for other in names if other != name]
            command = asks(question, arguments=others, of=_of(name), short={"rollout_id": "--id"})(command)
        seen |= {*names}
    return command


def _of(name: str) -> str:
    """What an option is for, in words."""
    having = [word for word, question in _QUESTIONS.items() if name in question.__struct_fields__]
    return f"For {', '.join(having)}" if having else ""


@click.command()
@run_argument_or_last
@click.argument("question", default="fates")
@_options
@dir_option
@format_options
def rollouts(run: str, question: str, limit: int, root: str, as_json: bool, as_csv: bool, **given: Any) -> None:
    """List the rollouts of a run or its prompts, or answer a question about them; the worst comes first.

    QUESTION is list, prompts, fates, curves, history, groups, staleness, gaps, tokens, tools, time, words or lost.

    \b
    Examples:
      rollbook rollouts last                       what became of them
      rollbook rollouts last list --where "not used" --search TimeoutError
      rollbook rollouts last list --by-group --order-by reward
      rollbook rollouts last prompts               which prompt is never solved
      rollbook rollouts last prompts --solved 0.9  solved: a reward above 0.9
      rollbook rollouts last curves --csv          reward, length … of each update
      rollbook rollouts last tools --json          which tool breaks
      rollbook rollouts last history --id 09ab-7   this prompt over training
    """
    from rollbook.book import RolloutQueries

    if run in {_LIST, *RolloutQueries.QUESTIONS} and question == "fates":  # only a question: about the last run
        run, question = "last", run
    asked = _QUESTIONS.get(question, RolloutAnswer)
    known = {option.name for option in options(asked)}
    chosen_options = {name: value for name, value in given.items() if value is not None}
    if unfit := [name for name in chosen_options if name not in known]:
        option = f"--{unfit[0].replace('_', '-')}"
        raise click.UsageError(f"{question} takes no {option}; rollbook rollouts --help has the questions that do")
    if question == "history" and "rollout_id" not in chosen_options:
        raise click.UsageError("history is about one prompt: --id ROLLOUT, the id of one of its rollouts")
    book = find_book(run, root, lambda book: book.row_count("rollouts") > 0, "rollouts")
    most = limit + 1 if limit >= 0 else limit
    answer = _answer(book, question, chosen_options, most)
    solved = chosen_options.get("solved")
    if question == "prompts" and answer.num_rows:
        remark(_solved(book.solved_above() if solved is None else None, None if solved is None else str(solved)))
    shown = answer.slice(0, limit)
    if as_json or as_csv:
        print_arrow(shown, as_json=as_json, as_csv=as_csv)
    else:
        _print_for_people(book, question, shown, by_group=bool(chosen_options.get("by_group")))
    if answer.num_rows > limit:
        remark(f"only the first {limit:,} rows; --limit shows more")


def _answer(book: Book, question: str, chosen_options: dict[str, Any], most: int) -> pa.Table:
    if question == _LIST:
        return book.rollouts(**chosen_options, limit=most)
    if question == "prompts":
        return book.rollout_prompts(**chosen_options, limit=most)
    if question == "curves":
        return book.rollout_curves(**chosen_options).slice(0, most if most >= 0 else None)
    return book.rollout_answer(question, **chosen_options, limit=most)  # type: ignore[arg-type]


def _print_for_people(book: Book, question: str, shown: pa.Table, *, by_group: bool) -> None:
    """What was asked, the table, and what is not in it or why it is empty."""
    from rollbook.book import RolloutQueries

    if question != _LIST:
        remark(RolloutQueries.QUESTIONS[question])
    if shown.num_rows or question in (_LIST, "history"):
        names = _listed(shown, by_group) if question == _LIST else shown.column_names
        rows = in_microseconds(shown.select(names)).to_pylist()
        print_fitted(rows, names, wide=_WIDE.get(question, ""), width=terminal_width())
    elif book.row_count("rollouts"):
        remark(f"nothing to list: {_EMPTY[question]}")
    else:
        remark("nothing to list: the run has no rollouts. `run.rollouts` records them")
    if question == "fates":
        (evaluations,) = book.sql("select count(*) from rollouts where mode = 'eval'").fetchall()[0]
        if evaluations:
            remark(f"not among these: {amount(evaluations, 'rollout')} of evaluations, which are not trained on")


def _listed(shown: pa.Table, by_group: bool) -> list[str]:
    """The columns of the list for people: those that have a value."""
    own = [*_OF_GROUPS, "task_id", "prompt"] if by_group else ["rollout_id", *_PLAIN]
    filled = {name for name in shown.column_names if shown[name].null_count < max(1, shown.num_rows)}
    return [name for name in own if name in filled]


def _solved(above: float | None, given: str | None) -> str:
    """What counts as solved, for people."""
    if given is not None:
        return f"solved: {given if number_in(given) is None else f'a reward above {given}'}"
    if above is None:
        return "solved: none, there is no reward"
    return f"solved: a reward above {above:g} ({RULE}; --solved sets it)"
