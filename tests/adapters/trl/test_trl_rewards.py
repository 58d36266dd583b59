"""Wrapped reward functions, with the arguments TRL gives them but without TRL."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import inspect
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from rollbook.adapters.trl import completions, record_rewards
from rollbook.adapters.trl.batches import link_of
from rollbook.adapters.trl.fates import Fates
from rollbook.adapters.trl.messages import text_of, turns_of
from rollbook.errors import BadInput, MissingExtra
from rollbook.run.run import Run


def length(completions: list[str], **_: Any) -> list[float]:
    return [float(len(text)) for text in completions]


async def later(completions: list[str], **_: Any) -> list[float | None]:
    await asyncio.sleep(0)
    return [None if text == "b" else 1.0 for text in completions]


class Judge:
    def __call__(self, completions: list[str], **_: Any) -> list[float]:
        return [0.5] * len(completions)


class Trainer:
    """What is asked of TRL's trainer."""

    def __init__(self) -> None:
        self.model = SimpleNamespace(training=True)
        self._logs: dict[str, list[Any]] = {"prompt": [], "completion": [], "advantages": []}
        self.extra: dict[str, list[Any]] = {}

    def log_extra(self, column: str, values: list[Any]) -> None:
        self.extra[column] = values


def call(functions: list[Any], trainer: Any, step: int, prompts: Any, answers: Any, **more: Any) -> list[Any]:
    """One call for rewards, as the trainers make it."""
    arguments = {
        "prompts": prompts,
        "completions": answers,
        "completion_ids": [[7] * (i + 1) for i in range(len(answers))],
        "trainer_state": SimpleNamespace(global_step=step),
        "log_extra": trainer.log_extra,
        **more,
    }
    found = [function(**arguments) for function in functions]
    return [asyncio.run(one) if inspect.iscoroutine(one) else one for one in found]


def test_functions_return_what_they_did_and_keep_their_names(run: Run) -> None:
    partial = functools.partial(length)
    wrapped = record_rewards([length, later, Judge(), partial, "org/model"], run)
    assert [getattr(one, "__name__", one) for one in wrapped] == ["length", "later", "Judge", "length", "org/model"]
    assert [inspect.iscoroutinefunction(one.__call__) for one in wrapped[:4]] == [False, True, False, False]
    answers = call(wrapped[:4], Trainer(), 0, ["p", "p"], ["a", "b"])
    assert answers == [[1.0, 1.0], [1.0, None], [0.5, 0.5], [1.0, 1.0]]
    assert not isinstance(record_rewards(length, run), list)


def test_each_completion_is_one_row_with_all_its_rewards(run: Run) -> None:
    link_of(run).weights = [1.0, 2.0]
    wrapped, trainer = record_rewards([length, later], run), Trainer()
    call(wrapped, trainer, 3, ["p", "p", "q"], ["a", "b", "ccc"], answer=["x", "y", "z"], image=[object()] * 3)
    rows = completions(run.book).to_pylist()
    assert [(row["prompt"], row["completion"], row["answer"]) for row in rows] == [
        ("p", "a", "x"),
        ("p", "b", "y"),
        ("q", "ccc", "z"),
    ]
    assert [(row["rewards/length"], row["rewards/later"], row["reward"]) for row in rows] == [
        (1.0, 1.0, 3.0),
        (1.0, None, 1.0),
        (3.0, 1.0, 5.0),
    ]
    assert [row["group"] for row in rows] == ["3-r0-0", "3-r0-0", "3-r0-1"]  # nobody said how large groups are
    assert [row["sampled_tokens"] for row in rows] == [1, 2, 3]
    assert {(row["policy_version"], row["gradient_step"], row["mode"]) for row in rows} == {(3, 4, "train")}
    assert "image" not in rows[0]
    assert run.bill()["drops"] == {"trl_column_image": 1}
    assert [turn["text"] for turn in run.book.table("turns").to_pylist()] == ["a", "b", "ccc"]


def test_groups_span_processes_and_ends_are_distinguished_from_cuts(run: Run) -> None:
    link = link_of(run)
    link.num_generations, link.rank, link.max_length, link.ends = 4, 1, 3, frozenset((1,))
    wrapped = record_rewards([length], run)
    call(wrapped, Trainer(), 0, ["p", "p"], ["a", "b"], completion_ids=[[5, 1], [5, 6, 7]])
    rows = completions(run.book).to_pylist()
    assert [row["group"] for row in rows] == ["0-0", "0-0"]  # with the two of process 0
    assert [row["stop_reason"] for row in rows] == ["stop", "length"]
    assert [row["status"] for row in rows] == ["completed", "truncated"]


def test_what_a_function_logs_besides_is_kept_and_passed_on(run: Run) -> None:
    def talks(completions: list[str], log_extra: Any, **_: Any) -> list[float]:
        log_extra("shout", [text.upper() for text in completions])
        return [0.0] * len(completions)

    trainer = Trainer()
    call(record_rewards([length, talks], run), trainer, 0, ["p"], ["a"])
    assert trainer.extra == {"shout": ["A"]}
    assert completions(run.book)["extra/shout"].to_pylist() == ["A"]


def test_two_batches_of_one_step_are_distinguished(run: Run) -> None:
    wrapped = record_rewards([length], run)
    for _ in range(2):
        call(wrapped, Trainer(), 5, ["p"], ["same"])
    rows = completions(run.book).to_pylist()
    assert [(row["batch"], row["group"]) for row in rows] == [("5", "5-r0-0"), ("5.1", "5.1-r0-0")]
    assert run.book.table("tasks").num_rows == 1


def test_advantages_are_taken_only_where_the_texts_agree(run: Run) -> None:
    """Without the trainer's buffer every completion of the batch is part of the next update."""
    link_of(run).joined = True
    wrapped, fates = record_rewards([length], run), Fates(run)
    for step, second in enumerate(("other", "b")):
        trainer = Trainer()
        call(wrapped, trainer, step, ["p", "p"], ["a", "b"])
        link_of(run).trainer = weakref.ref(trainer)
        trainer._logs.update(prompt=["x", "p", "p"], completion=["x", "a", second], advantages=[9.0, 1.0, -1.0])
        fates.used()
        fates.updated(step + 1)
    rows = completions(run.book, order_by="gradient_step, advantage").to_pylist()
    assert [(row["advantage"], row["used"], row["reason"], row["staleness"]) for row in rows] == [
        (None, True, "zero_std", 0),
        (None, True, "zero_std", 0),
        (-1.0, True, "zero_std", 0),
        (1.0, True, "zero_std", 0),
    ]
    fates.end()
    assert run.book.table("fates").num_rows == 4


def test_what_was_never_trained_on_has_its_fate_when_training_ends(run: Run) -> None:
    trainer = Trainer()
    call(record_rewards([length], run), trainer, 0, ["p", "p"], ["a", "bb"])
    fates = Fates(run)
    fates.end()
    fates.end()
    assert completions(run.book)["reason"].to_pylist() == ["surplus"] * 2
    assert run.book.table("fates").num_rows == 2


def test_messages_of_tools_are_turns_with_their_part_of_the_tokens() -> None:
    talk = [
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}]},
        {"role": "tool", "name": "add", "content": "3"},
        {"role": "assistant", "content": "three"},
    ]
    lists = {"tokens": [1, 2, 3, 4, 5], "mask": [1, 1, 0, 1, 1]}
    turns = turns_of(talk, lists)
    assert [(turn["role"], turn["tokens"], turn["mask"]) for turn in turns] == [
        ("assistant", [1, 2], [1, 1]),
        ("tool", [3], [0]),
        ("assistant", [4, 5], [1, 1]),
    ]
    whole = turns_of(talk, {**lists, "mask": [1] * 5})  # the mask does not tell where a message ends
    assert ["tokens" in turn for turn in whole] == [False, False, True]


def test_a_function_that_raises_leaves_the_completions_in_the_book(run: Run) -> None:
    def broken(**_: Any) -> list[float]:
        raise ZeroDivisionError

    wrapped = record_rewards([length, broken], run)
    with pytest.raises(ZeroDivisionError):
        call(wrapped, Trainer(), 0, ["p"], ["a"])
    (row,) = completions(run.book).to_pylist()
    assert (row["rewards/length"], row.get("rewards/broken"), row["reward"], row["reason"]) == (
        1.0,
        None,
        None,
        "error",
    )


def test_without_a_run_rewards_work_and_one_warning_says_so() -> None:
    wrapped = record_rewards([length])
    with pytest.warns(UserWarning, match="no run is open"):
        assert call(wrapped, Trainer(), 0, ["p"], ["abc"]) == [[3.0]]
    assert call(wrapped, Trainer(), 1, ["p"], ["abc"]) == [[3.0]]


def test_what_is_no_reward_function_is_refused() -> None:
    with pytest.raises(BadInput, match="found a int among the reward functions"):
        record_rewards([length, 3])


@pytest.mark.skipif(importlib.util.find_spec("transformers") is not None, reason="transformers is installed here")
def test_without_transformers_the_line_that_installs_it_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'rollbook(-core)?\[trl\]'"):
        from rollbook.adapters.trl import RollbookCallback  # noqa: F401


def test_conversations_are_the_same_text_in_memory_and_from_parquet() -> None:
    user = {"role": "user", "content": "hi"}
    assert text_of("plain") == "plain"
    assert text_of([user]) == "hi"
    assert text_of([user, {"role": "assistant", "content": "yo"}]) == "user: hi\nassistant: yo"
    blocks = [{"type": "image"}, {"type": "text", "text": "what?"}]
    assert text_of([{"role": "user", "content": blocks}]) == "what?"
    calls = {"role": "assistant", "content": "", "tool_calls": [{"name": "f", "arguments": {"x": 1}}]}
    from_file = {**calls, "content": "", "tool_calls": [{"name": "f", "arguments": {"x": 1, "y": None}, "id": None}]}
    assert text_of([calls]) == text_of([from_file])
    assert text_of({"odd": 1}) == '{"odd": 1}'
