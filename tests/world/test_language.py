"""Completions, groups and rewards of language models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rollbook.cli.app import app

Begin = Callable[..., Any]


def _train(run: Any, steps: int, prompts: int = 3, generations: int = 4, micro: int = 2) -> None:
    """GRPO by hand: each update is made of `micro` micro-batches; half of each group is right."""
    for step in range(steps):
        ids: list[str] = []
        for prompt in range(prompts):
            ids += run.rollouts.log_many(
                prompts=[f"{prompt} + {prompt}"] * generations,
                completions=[f"{step} {n}" for n in range(generations)],
                rewards={"accuracy": [float(n % 2) for n in range(generations)]},
                group=f"{step}-{prompt}",
                policy_version=step,
            )
        size = len(ids) // micro
        for start in range(0, len(ids), size):
            run.rollouts.trained(ids[start : start + size], advantage=1.0, gradient_step=step + 1)


def test_completions_of_every_step_are_there_and_not_only_the_newest(begin: Begin) -> None:
    run = begin()
    _train(run, 5)
    texts = run.book.rollouts()["item"].to_pylist()
    assert sorted(texts) == sorted(f"{step} {n}" for step in range(5) for n in range(4) for _ in range(3))


def test_all_prompts_of_an_update_are_there_whatever_accumulation_cuts(begin: Begin) -> None:
    run = begin()
    _train(run, 2, prompts=6, micro=4)
    rows = run.book.sql("""select gradient_step, count(distinct task_id), count(*) from rollouts_now
        group by 1 order by 1""").fetchall()
    assert rows == [(1, 6, 24), (2, 6, 24)]
    assert run.book.rollout_curves()["group/n"].to_pylist() == [6, 6]


def test_a_failed_tool_call_is_a_row_with_its_reason(begin: Begin) -> None:
    run = begin()
    try:
        with run.rollouts.begin(task="find it", group="g", policy_version=0) as rollout:
            rollout.turn("assistant", "look", calls=[{"name": "search"}])
            raise TimeoutError("the tool did not answer")
    except TimeoutError:
        pass
    (row,) = run.book.rollouts().to_pylist()
    assert (row["status"], "TimeoutError" in row["error"], row["turns"]) == ("failed", True, 1)


def test_an_advantage_that_comes_late_belongs_to_its_completion(begin: Begin) -> None:
    """Two equal completions of one prompt are two rollouts."""
    run = begin()
    ids = run.rollouts.log_many(prompts=["q", "q"], completions=["same", "same"], reward=[0.0, 1.0], group="g")
    run.rollouts.trained(ids[1:], advantage=[1.0], gradient_step=1)
    run.rollouts.trained(ids[:1], advantage=[-1.0], gradient_step=1)
    rows = run.book.rollouts().to_pylist()
    assert {row["reward"]: row["advantage"] for row in rows} == {0.0: -1.0, 1.0: 1.0}


def test_a_reward_function_that_answers_nothing_leaves_its_part_empty(begin: Begin) -> None:
    run = begin()
    run.rollouts.log_many(completions=["a", "b"], rewards={"accuracy": [1.0, 0.0], "style": [None, 0.5]})
    rows = run.book.rollouts().to_pylist()
    assert [(row["rewards/style"], row["reward"]) for row in rows] == [(None, None), (0.5, 0.5)]


class _Model:
    """A message as client libraries hand it over: an object that lists its fields."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        def dumped(value: Any) -> Any:
            return [dumped(each) for each in value] if isinstance(value, list) else getattr(value, "__dict__", value)

        return {name: dumped(value) for name, value in self.__dict__.items()}


class _Bare:
    """The same without a way to list them."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


@pytest.mark.parametrize("make", [dict, _Model, _Bare, lambda **fields: _Bare(message=_Model(**fields))])
def test_a_message_is_kept_whichever_kind_of_object_it_is(begin: Begin, make: Callable[..., Any]) -> None:
    run = begin()
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    asked = {"role": "user", "content": "Who?"}
    answers = [make(role="assistant", content=None, tool_calls=[call]), make(role="assistant", content="Ada")]
    result = {"role": "tool", "tool_call_id": "c1", "content": "nothing"}
    run.rollouts.log_many(messages=[[asked, answers[0], result, answers[1]]])
    run.rollouts.log_many(prompts=[[make(**asked)]], completions=[answers[1]])
    first, second = run.book.rollouts().to_pylist()
    assert (first["prompt"], first["item"], first["turns"]) == ("Who?", "Ada", 3)
    assert (second["prompt"], second["item"], second["turns"]) == ("user: Who?", "Ada", 1)
    turns = run.book.table("turns").to_pylist()
    assert [turn["name"] for turn in turns] == [None, "search", None, None]
    assert "search" in turns[0]["calls"]
    assert run.bill()["drops"] == {}


def test_a_picture_in_a_prompt_is_named_in_its_text_and_not_spelled_out(begin: Begin) -> None:
    run = begin()
    url = "data:image/png;base64," + "A" * 1000
    parts = [{"type": "text", "text": "Who is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    run.rollouts.log_many(
        messages=[
            [{"role": "user", "content": parts}, {"role": "assistant", "content": [{"type": "text", "text": "Ada"}]}]
        ]
    )
    (row,) = run.book.rollouts().to_pylist()
    assert (row["prompt"], row["item"]) == ("user: Who is this?\n[image_url]", "Ada")
    assert url in run.book.table("tasks")["messages"][0].as_py()


def test_rollouts_of_evaluations_are_left_out_of_fates_and_it_is_said(begin: Begin, root: Path) -> None:
    run = begin("evals")
    run.rollouts.log_many(prompts=["q"] * 3, completions=["a", "b", "c"], reward=[1.0, 0.0, 1.0], mode="eval")
    run.rollouts.trained(run.rollouts.log_many(completions=["d"], reward=[1.0]), gradient_step=1)
    run.finish()
    shown = CliRunner().invoke(app, ["rollouts", "evals", "--dir", str(root)])
    assert "used" in shown.stdout
    assert "3 rollouts of evaluations" in shown.output


def test_a_table_for_each_iteration_under_a_key_of_its_own_is_one_table(root: Path) -> None:
    """A thousand iterations were a thousand tables, each a folder."""
    import rollbook.wandb as wandb

    import rollbook

    run = wandb.init(project="world", name="r1")
    for iteration in range(12):
        rows = [[f"answer {iteration}", float(iteration)], ["other", 0.0]]
        run.log({f"episodes/iter_{iteration:06d}": wandb.Table(columns=["text", "reward"], data=rows)})
    run.finish()
    book = rollbook.open(root).one("r1")
    assert {name: n for name, n in book.overview().tables.items() if n} == {"episodes_iter": 24}
    rows = book.rows("episodes_iter", where="iteration = 11", order_by="reward desc").to_pylist()
    assert [(row["text"], row["reward"]) for row in rows] == [("answer 11", 11.0), ("other", 0.0)]


@pytest.mark.parametrize("anew", [True, False], ids=["a new table each time", "one table"])
def test_a_table_that_grows_has_each_row_once_at_the_step_that_brought_it(root: Path, anew: bool) -> None:
    """verl: `new = wandb.Table(columns, data=old.data); new.add_data(step, …); wandb.log({"val/generations": new})`."""
    import rollbook.wandb as wandb

    import rollbook

    columns = ["step", "input_1", "output_1", "score_1"]
    table = wandb.Table(columns=columns)
    with wandb.init(project="world", name="grows") as run:
        for step in (1, 3, 6):
            table = wandb.Table(columns=columns, data=table.data) if anew else table
            table.add_data(step, "2+2", f"answer at {step}", step / 10)
            run.log({"val/generations": table}, step=step)
            run.log({"fixed": wandb.Table(columns=["answer"], data=[["same"], ["same"]])}, step=step)
    book = rollbook.open(root).one("grows")
    rows = book.table("val_generations").to_pylist()
    assert [(row["step"], row["output_1"]) for row in rows] == [(n, f"answer at {n}") for n in (1, 3, 6)]
    assert [row["step"] for row in book.table("fixed").to_pylist()] == [1, 1, 3, 3, 6, 6]


def test_tables_of_many_keys_are_not_kept_in_memory(root: Path) -> None:
    """A program that logs a table under a new key each time holds no more of them at its end than at its beginning."""
    import gc

    import rollbook.wandb as wandb

    class Cell(str):
        pass

    with wandb.init(project="world", name="many") as run:
        for n in range(100):
            run.log({f"episodes/iter_{n:03}": wandb.Table(columns=["a"], data=[[Cell("of a count")]])}, step=n)
            run.log({f"task {n}": wandb.Table(columns=["a"], data=[[Cell("of a name")]])}, step=n)
        gc.collect()
        left = [str(each) for each in gc.get_objects() if type(each) is Cell]
    assert left.count("of a count") <= 1
    assert left.count("of a name") <= 30
