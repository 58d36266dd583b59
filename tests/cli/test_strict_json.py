"""What every command prints as JSON is JSON for every parser, whatever stands in the run."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click import Context
from click.testing import CliRunner

import rollbook
from json_shapes import misfits
from rollbook.cli.app import app
from rollbook.cli.shapes import SHAPES
from rollbook.system.texts import json_text

BIG = 2**63
ODD: dict[str, Any] = {
    "nan": math.nan, "inf": math.inf, "minus": -math.inf, "big": BIG, "huge": 10**400, "small": -(2**63) - 1,
    "bytes": b"a\xff\x00", "text": "caf\u00e9 \x1b[2J", "tuple": (math.inf,),
    "nested": {"nan": [math.nan, {"inf": math.inf}]}, "numpy": np.float32("nan"),
    "\u00fc": np.int64(3), "set": {1}, "none": None, "true": True, "float": 0.1,
}  # fmt: skip


def strict(text: str) -> Any:
    """What a parser of another language sees, which knows no NaN, no integer beyond 64 bits and no half characters."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    def integer(digits: str) -> int:
        assert -(2**63) <= int(digits) < 2**63, f"{digits} has more than 64 bits"
        return int(digits)

    value = json.loads(text, parse_constant=refuse, parse_int=integer)
    json.dumps(value, ensure_ascii=False).encode()  # raises at half of a surrogate pair
    return value


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with odd values in configuration, summary, rows, samples, episodes, timings and checkpoints."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.delenv("ROLLBOOK_RUN_ID", raising=False)
        for seed in range(2):
            with rollbook.init(
                "p", "n", seed=seed, dir=root, sinks=[], keeper="inline", config={**ODD, "n": seed}
            ) as run:
                run.summary.update(ODD)
                for step, value in enumerate((1.0, math.nan, math.inf, -math.inf, BIG, 2**64 + 1)):
                    with run.timer("collect"):
                        run.log({"a": value, "b": float(step)}, env_step=step)
                run.log({"\ud800 odd": "half \ud800", "a": math.nan})
                run.log_samples([b"\xff", "b"], reward=[math.nan, math.inf])
                run.log_episode(return_=math.nan, length=BIG, info=ODD["nested"])
                run.save_checkpoint({"w": 1}, score=math.inf)
    return root


EPISODE = ["episodes", "last", "--episode", "last"]
QUERY = """
    select 'nan'::double as a, 'inf'::double as b, 9223372036854775808::hugeint as c, '\\xFF'::blob as d, * from metrics
"""
COMMANDS = [
    ["ls"], ["ls", "--columns", "config.nan,config.big,config.bytes", "--metric", "b=best"], ["show", "last"],
    ["cause", "last", "--at", "1", "--key", "a"], ["curves", "p", "--key", "b"], ["findings"], ["plans"],
    ["compare", "p", "--metric", "b", "--by", "config.n"], ["compare", "p", "--metric", "a", "--by", "config.n"],
    ["series", "p", "-k", "b"], ["diff", "p"], ["diff", "p", "--metric", "b"], ["sweep", "p", "--metric", "b"],
    ["sweep", "p", "--metric", "a"], ["seeds", "--std", "1"], ["tail", "last", "-n", "50"], ["logs", "last", "--list"],
    ["disk"], ["rm", "p"], ["rm", "--bin"], ["board", "mine", "a", "--first"], ["board"],
    ["episodes", "last"], EPISODE,
    ["samples", "last"], ["samples", "last", "--unique"], ["text", "last"], ["media", "last"],
    ["rows", "last", "metrics"], ["rollouts", "last"],
    ["checkpoints", "last", "--all"], ["timings", "last"], ["novelty", "last"], ["unused", "last"],
    ["shared-prompts", "last", "last"],
    ["sql", "last", QUERY], ["verify", "last"], ["repair", "last"],
    ["wait", "last", "--until", 'last("a") > 0 or max("b") > 1'], ["alerts", "p"], ["check", "p", "--fail-on", "never"],
    ["scores"], ["plot", "p", "--key", "b"], ["plot", "last", "--key", "b", "-o", "b.svg"], ["shapes"],
    ["report", "last", "-o", "r.html"], ["export", "last", "-o", "m.csv"], ["views"], ["seal", "last"],
    ["trim", "last", "--keep", "1MB"],
    ["export", "p", "--to", "rliable", "-o", "s.json", "-O", "metric=b", "-O", "by=config.n"],
    ["import", "old.csv", "--project", "old"], ["forward", "last", "--to", "csv"], ["push", "last", "remote"],
    ["sync", "last", "remote", "--merge"], ["catalogue", "remote"], ["pull", "remote"],
]  # fmt: skip
ELSEWHERE = {"play": "tests/episodes/test_cli.py", "join": "tests/cluster/test_parts.py"}
"""Commands whose answers need a video or a part of a run: other tests hold them to their shapes."""
PROGRAMS = {"label", "demo", "run", "ui", "watch", "mcp"}
"""Commands that run until somebody ends them, and have no answer."""


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_answer_is_strict_json_of_its_shape(
    words: list[str], runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs.parent)
    (runs.parent / "old.csv").write_text("step,loss\n1,0.5\n")
    place = [] if words[0] in ("catalogue", "shapes") else ["--dir", str(runs)]
    if words[0] in ("catalogue", "pull") and not (runs.parent / "remote").exists():
        assert CliRunner().invoke(app, ["push", "last", "remote", "--dir", str(runs)]).exit_code == 0
    if words[0] in ("import", "pull"):
        place = ["--dir", str(runs.parent / words[0])]
    if words[0] == "scores":  # of papers: files of numbers, and no runs
        place = [str(runs / "A.json"), str(runs / "B.json")]
        for name in place:
            Path(name).write_text(json.dumps({"pong": [1.0, 2.0, BIG], "\u00fc": [0.0, 0.0, 0.0]}))
    done = CliRunner().invoke(app, [*words, *place, "--json"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    if done.exit_code and words[0] == "compare":
        assert done.stdout == ""
        return  # nothing can be said of scores that are no numbers
    assert done.exit_code == 0, done.output
    for text in done.stdout.splitlines() if words[0] == "tail" else [done.stdout]:
        answer = strict(text)
        shape = SHAPES[words[0]]
        assert misfits(answer, shape[0] if words == EPISODE and isinstance(shape, list) else shape) == []


def _flags() -> list[list[str]]:
    """Each command once with each flag that it takes besides --json, and words that make it print something else."""
    found = []
    for words in {each[0]: each for each in reversed(COMMANDS)}.values():
        command = app.get_command(Context(app), words[0])
        assert command is not None
        flags = [each.opts[-1] for each in command.params if getattr(each, "is_flag", False)]
        found += [[*words, flag] for flag in flags if flag not in ("--json", "--follow", "--help", "--merge", "--yes")]
    return [*sorted(found), ["checkpoints", "last", "best"], ["checkpoints", "last", "last"]]


@pytest.mark.parametrize("words", _flags(), ids=" ".join)
def test_json_stays_json_whatever_else_is_asked(words: list[str], runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs.parent)
    (runs.parent / "old.csv").write_text("step,loss\n1,0.5\n")
    place = [] if words[0] in ("catalogue", "shapes", "scores") else ["--dir", str(runs)]
    if words[0] == "catalogue":
        assert CliRunner().invoke(app, ["push", "last", "remote", "--dir", str(runs)]).exit_code == 0
    if words[0] == "scores":
        Path("A.json").write_text(json.dumps({"pong": [1.0, 2.0, 3.0], "seaquest": [0.0, 0.5, 0.25]}))
        place = ["A.json"]
    done = CliRunner().invoke(app, [*words, *place, "--json"])
    assert done.exit_code in (0, 2), (done.output, done.exception)
    if done.exit_code == 0:
        for text in done.stdout.splitlines() if words[0] == "tail" else [done.stdout]:
            answer = strict(text)
        if "--latex" in words:
            assert "tabular" in answer["latex"]


def test_every_command_that_prints_json_is_asked() -> None:
    takes = set()
    for name in app.list_commands(Context(app)):
        command = app.get_command(Context(app), name)
        assert command is not None
        takes |= {name for parameter in command.params if "--json" in parameter.opts}
    assert takes == {words[0] for words in COMMANDS} | {*ELSEWHERE} == {*SHAPES}
    assert {*app.list_commands(Context(app))} - takes == PROGRAMS


@pytest.mark.parametrize(
    ("answer", "shape"),
    [({"a": 1}, {}), ({}, {"a": "any"}), ({"a": None}, {"a": "text"}), ([1, "x"], ["integer"]), (True, "integer")],
)
def test_an_answer_of_another_shape_is_found(answer: Any, shape: Any) -> None:
    assert misfits(answer, shape)


def test_what_is_no_number_is_reported_in_one_way_everywhere(runs: Path) -> None:
    def answer(*words: str) -> Any:
        return strict(CliRunner().invoke(app, [*words, "--dir", str(runs), "--json"]).stdout)

    shown = answer("show", "last")
    for fields in (shown["config"], shown["summary"], answer("ls")[0]["config"]):
        assert (fields["nan"], fields["inf"], fields["minus"]) == ("NaN", "Infinity", "-Infinity")
        assert fields["nested"] == {"nan": ["NaN", {"inf": "Infinity"}]}
        assert (fields["big"], fields["none"], fields["true"], fields["float"]) == (str(BIG), None, True, 0.1)
    row = answer("sql", "last", QUERY)[0]
    assert (row["a"], row["b"], row["c"], row["d"]) == ("NaN", "Infinity", str(BIG), "\\xff")
    rows = CliRunner().invoke(app, ["tail", "last", "--dir", str(runs), "--json", "--keys", "^a$"]).stdout.splitlines()
    values = [strict(line)["values"]["a"] for line in rows]
    assert values[:4] == [1.0, "NaN", "Infinity", "-Infinity"]


def test_an_export_to_json_lines_is_strict_too(runs: Path) -> None:
    for table in ("metrics", "samples", "episodes", "checkpoints"):
        words = ["export", "last", "--dir", str(runs), "--table", table, "--to", "jsonl"]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0
        assert [strict(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "value", [math.nan, BIG, "\ud800", b"\xff", {math.nan: 1}, np.array([math.inf]), object(), {1}]
)
def test_any_value_has_a_form(value: object) -> None:
    strict(json_text(value))
