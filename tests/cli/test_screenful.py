"""Every object that a user can hold prints itself in a screenful, and says what it is."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any, is_typeddict

import numpy as np
import pytest
from click import Context, Option

import rollbook
from rollbook import stats
from rollbook.book.questions.logs import LogFile, LogLine
from rollbook.cli.app import app
from rollbook.cli.fitted_table import print_fitted
from rollbook.cli.output import in_lines
from rollbook.runs.removing import Binned
from rollbook.schema.problems import Problem

POINTS = 1_000
LONG = "a" * 50


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the verbs of the reading and the writing end return, over runs with long rows and long names."""
    root = tmp_path_factory.mktemp("held")
    rng = np.random.default_rng(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ROLLBOOK_RUN_ID", raising=False)
        for algo in range(3):
            for seed in range(3):
                config = {"algo": f"{algo}-{LONG}", "many": list(range(100))}
                how: dict[str, Any] = {"dir": root, "sinks": [], "keeper": "inline", "config": config}
                if algo or seed:  # rules of a run that goes back read its history, in a process
                    how["rules"] = ()
                with rollbook.init("p", LONG, seed=seed, **how) as run:
                    steps = np.arange(POINTS)
                    run.log_many({"test/return": rng.normal(algo, 1, POINTS), f"{LONG}/x": steps * 1.0}, env_step=steps)
                    run.log_episode(return_=1.0, length=3, env_step=1)
                    samples = run.log_samples([LONG] * 50, reward=list(range(50)))
                    with run.rollouts.begin(task=LONG) as rollout:
                        rollout.turn("assistant", LONG, tokens=[1] * 1000, logprobs=[-1.0] * 1000)
                    with run.timer("collect"):
                        checkpoint = run.save_checkpoint({"w": 1}, score=1.0)
                    restored = run.restore("last")
    runs = rollbook.open(root)
    book = runs[0]
    curves = runs.curves("test/return", by="config.algo", x="env_step")
    rollout_id = book.rollouts()["rollout_id"][0].as_py()
    comparison, answers = runs.compare("test/return", by="config.algo"), runs.map(lambda book: book.id)
    scores = rng.normal(0, 1, (8, 3))
    siblings = rollbook.siblings(2, project="p", dir=root, sinks=[], keeper="inline")
    yield {
        "run": run, "scope": run.scope("train"), "checkpoint": checkpoint, "timer": run.timer("x"),
        "restored": restored, "runs": runs,
        "book": book, "saved": book.checkpoint("best"), "episode": book.episode("last"),
        "series": book.series("test/return"), "reduced": book.series("test/return", points=100),
        "rows": list(book.tail(3)), "samples": samples, "rollout": book.rollout(rollout_id),
        "picture": book.plot("test/return"), "curves": curves, "reached": curves.reached(),
        "parted": curves.parted(), "panel": curves.panel(), "compare": comparison, "paired": comparison.paired(),
        "aggregates": comparison.aggregates(), "seed plan": comparison.seed_plan(1.0, 0.8, (5, 10)),
        "plan": runs.compare("test/return", by="config.algo", plan="p", floor=0.0),
        "tasks": runs.compare("test/return", by="config.algo", task="seed"),
        "swept": runs.sweep("test/return"),
        "series of runs": runs.series("test/return"),
        "diff": runs.diff(), "diff by": runs.diff("test/return"), "answers": answers, "answer": list(answers),
        "interval": stats.iqm_interval(scores) if hasattr(stats, "iqm_interval") else None,
        "siblings": siblings, "cause": book.cause(POINTS // 2, x="env_step", everything=True),
        "overview": book.overview(), "findings": runs.findings(), "problem": Problem("a sentence", "kind"),
        "disk": runs.disk(), "to remove": runs.remove(), "bin": runs.bin, "verified": runs.verify(),
        "of two": runs.shared_prompts(run.id, book.id),
        "board": runs.boards.save("mine", ["test/return"]), "boards": runs.boards,
        "run.json": book.info,
        "binned": Binned("b", "a", "i", "p", "n", 0.0, 1),
        "log": [LogFile(name="a", label="a", bytes=1, kind="file"), LogLine(offset=0, text="a", time=None)],
    }  # fmt: skip
    siblings.finish()


def ours(value: object, depth: int = 0) -> Iterator[Any]:
    """An object of rollbook's and those of rollbook's inside of it."""
    if type(value).__module__.startswith("rollbook"):
        yield value
    if depth > 4:
        return
    if isinstance(value, (list, tuple)):
        inside: list[object] = list(value)[:5]
    elif isinstance(value, dict):
        inside = list(value.values())[:5]
    else:
        inside = [getattr(value, name) for name in getattr(type(value), "__dataclass_fields__", ())]
    for part in inside:
        yield from ours(part, depth + 1)


def test_what_a_user_holds_prints_in_a_screenful(held: dict[str, Any]) -> None:
    kinds = set()
    for name, thing in held.items():
        for value in ours(thing):
            kinds.add(type(value).__name__)
            for text in (repr(value), str(value)):
                lines = text.splitlines()
                assert 1 <= len(lines) <= 40, (name, type(value))
                assert max(map(len, lines)) <= 250 if len(lines) == 1 else max(map(len, lines)) <= 100, (name, text)
                assert " object at 0x" not in text, (name, text)
                assert "array(" not in text, (name, text)
    assert {"Comparison", "Curves", "GroupCurve", "Band", "Aligned", "Group", "Pair", "Interval", "Series"} <= kinds


DOORS = ("internals", "media", "run_info", "samples", "checkpoints", "rollouts")
"""Of a run and a book: what adapters and sinks use."""


ROOMS = ("book", "capture", "compare", "plots", "run", "runs", "schema", "stats")


def returned_by(cls: type) -> Iterator[str]:
    """What the public methods and properties of a class return: the words of their annotations."""
    for base in cls.__mro__:
        internal = (*getattr(sys.modules[base.__module__], "_INTERNAL", ()), *DOORS)
        for name, member in vars(base).items() if base.__module__.startswith("rollbook") else ():
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if name[0] != "_" and name not in internal and inspect.isfunction(function):
                said = str(function.__annotations__.get("return", ""))
                yield from re.findall(r"\w+", said.replace("pa.Table", ""))


def test_every_kind_of_object_that_a_method_returns_is_printed_here(held: dict[str, Any]) -> None:
    """From a run or a set of runs on, whatever is reached by calling methods."""
    printed = {type(value).__name__ for thing in held.values() for value in ours(thing)}
    classes: dict[str, list[type]] = {}
    for name, module in sys.modules.items():
        for cls in vars(module).values() if name.startswith(tuple(f"rollbook.{room}." for room in ROOMS)) else ():
            if inspect.isclass(cls) and cls.__module__ == name and cls.__name__[0] != "_" and not is_typeddict(cls):
                classes.setdefault(cls.__name__, []).append(cls)
    reached: set[str] = set()
    left = ["Run", "Scope", "Book", "RunSet"]
    while left:
        word = left.pop()
        if word in classes and word not in reached:
            reached.add(word)
            left += [each for cls in classes[word] for each in returned_by(cls)]
    assert {"Comparison", "Picture", "Rollout", "Curves"} <= reached
    assert sorted(reached - printed) == []


def test_a_comparison_prints_its_sentences(held: dict[str, Any]) -> None:
    text = " ".join(str(held["compare"]).split())
    for sentence in held["compare"].sentences()[:2]:
        assert " ".join(sentence.split())[:60] in text


def test_the_help_of_each_command_fits_a_terminal_of_80_columns() -> None:
    for name in app.list_commands(Context(app)):
        command = app.get_command(Context(app), name)
        assert command is not None
        text = command.get_help(Context(command, info_name=f"rollbook {name}", terminal_width=80))
        assert [line for line in text.splitlines() if len(line) > 80] == [], name


def test_the_list_of_commands_has_a_line_for_each() -> None:
    text = app.get_help(Context(app, info_name="rollbook", terminal_width=80))
    assert re.findall(r"^(\w[\w ]*):$", text, re.M) == ["Options", "Record", "Look at runs", "Judge", "Move", "Mend"]
    listed = re.findall(r"^  (\S+) +\S.*", text.partition("\nRecord:")[2], re.M)
    assert listed == app.list_commands(Context(app))


def test_a_long_sentence_ends_its_lines_between_words_and_its_command_can_be_copied() -> None:
    command = "rollbook compare cartpole --metric test/return --by config.algo"
    sentence, typed = in_lines(f"Next: train 13 more seeds of each group, then type again: {command}", 60)
    assert (sentence, typed.strip()) == ("Next: train 13 more seeds of each group, then type again:", command)
    assert in_lines("List them with: rollbook ls", 60) == ["List them with: rollbook ls"]
    words = "one two-three " * 20
    assert max(map(len, in_lines(words, 40))) <= 40
    assert " ".join(" ".join(in_lines(words, 40)).split()) == words.strip()
    assert in_lines("", 40) == []


def test_no_option_is_explained_in_words_of_python() -> None:
    for name in app.list_commands(Context(app)):
        command = app.get_command(Context(app), name)
        assert command is not None
        for option in command.params:
            if isinstance(option, Option):
                assert option.help, (name, option.name)
                assert not re.search(r"None|\(\)", option.help), (name, option.name, option.help)


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("where", ["at the end", "in the middle", "at the beginning"])
def test_names_that_differ_are_not_cut_to_equality(where: str, width: int, capsys: pytest.CaptureFixture[str]) -> None:
    same = "a-long-study-of-many-settings" * 5
    names = {
        "at the end": [f"{same}-{n}" for n in range(5)],
        "in the middle": [f"study-{n}-{same}" for n in range(5)],
        "at the beginning": [f"{n}-{same}" for n in range(5)],
    }[where]
    print_fitted([{"run": name, "id": "k3v9x2ab", "took": 3} for name in names], ["run", "id", "took"], width=width)
    lines = capsys.readouterr().out.splitlines()
    assert len({line.split()[0] for line in lines}) == 6
    assert max(map(len, lines)) <= width
