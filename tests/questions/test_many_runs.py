"""The promise that a question has one answer by every door: each of `runs/questions.py`, asked about hard runs."""

from __future__ import annotations

import functools
import html
import inspect
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import rollbook
from cases import some_of
from hard_runs import KEY
from page_server import client_of
from question_faces import own_types, words_of_arguments
from rollbook.cli.app import app
from rollbook.errors import RollbookError
from rollbook.runs.questions import QUESTIONS
from rollbook.runs.run_set import RunSet
from rollbook.schema.question import Question, name_of, options, title_of
from rollbook.server.agents import AgentTools
from rollbook.server.frames import MEDIA_TYPE, unpack
from rollbook.server.openapi import ENDPOINTS
from rollbook.server.shared.catalogue import Catalogue
from rollbook.server.static_copy import POINTS as POINTS_OF_A_COPY
from rollbook.server.static_copy import export
from waiting import until

OWN: dict[str, set[str]] = {
    "cli": {
        "fail_on",
        "std",
        "groups",
        "runs",
        "where",
        "root",
        "as_json",
        "as_csv",
        "as_patch",
        "limit",
        "folder",
        "theme",
        "latex",
        "markdown",
        "help",
    },
    "http": {"runs", "opened", "filter", "search", "refine", "fields", "ghosts"},
    "mcp": {"runs", "where", "cursor"},
}
"""What a door may add: which runs, how much of the answer, and how it is shown."""
SEVERAL = {"curves": {"keys": "key"}}
"""What one request may give several of: each has an answer of its own."""
FIELDS = ["mean", "min", "max", "count"]


@pytest.fixture(scope="module")
def root(hard: Path) -> Path:
    record_prompts(hard / "prompts")
    return hard


def record_prompts(folder: Path) -> None:
    """Runs of two prompts, whose rewards have all parts, one or none in common."""
    parts = {
        "long": {"accuracy": [0.0, 0.0], "length": [5.0, 4.0]},
        "right": {"accuracy": [1.0, 0.0], "format": [0.1, 0.1]},
        "again": {"accuracy": [1.0, 0.5], "format": [0.1, math.nan]},
        "styled": {"style": [3.0, 4.0]},
    }
    for name, rewards in parts.items():
        with rollbook.init("p", name, dir=folder, sinks=[], keeper="import", rules=()) as run:
            for prompt in ("1 + 1?", 'say "grün"', name):
                run.rollouts.log_many(prompts=[prompt] * 2, completions=["a", "b"], rewards=rewards)


def command_of(name: str) -> str:
    """The command of a question."""
    return name.replace("_", "-")


@pytest.fixture(scope="module")
def doors(root: Path) -> Iterator[Doors]:
    assert len(rollbook.open(root / "foreign")) == 3  # and so they are read before the server looks
    places = {name: root / name for name in ("runs", "foreign", "prompts")}
    tools = {name: AgentTools(str(place), budget=10_000_000).tools() for name, place in places.items()}
    with (
        client_of(places["runs"]) as runs,
        client_of(places["foreign"]) as others,
        client_of(places["prompts"]) as prompts,
    ):
        keys = {
            row.folder: key for place in places.values() for key, row in Catalogue([str(place)]).snapshot().rows.items()
        }
        yield Doors(root, {"runs": runs, "foreign": others, "prompts": prompts}, tools, keys)


class Doors(NamedTuple):
    """The doors of two folders, and the names of their runs in the API."""

    root: Path
    clients: dict[str, TestClient]
    tools: dict[str, list[Callable[..., str]]]
    keys: dict[str, str]

    def python(self, name: str, folder: str, ask: dict[str, Any]) -> Any:
        given = dict(ask)
        try:
            return FACES[name](getattr(self._runs(folder, given.pop("where", None)), name)(**given))
        except RollbookError as err:
            return {"error": str(err)}

    def cli(self, name: str, folder: str, ask: dict[str, Any]) -> Any:
        line, given = [command_of(name), "--dir", str(self.root / folder), "--json"], dict(ask)
        line += [given.pop(one) for one in ("run", "other") if one in given]
        if name == "verify":  # it takes any number of folders, damaged ones too
            line += [str(row["path"]) for row in self._runs(folder, given.pop("where", None)).rows()]
        for option, value in given.items():
            for each in value if isinstance(value, list) else [value]:
                line += [
                    f"--{option.replace('_', '-')}",
                    *([] if each is True else [str("none" if each is None else each)]),
                ]
        done = CliRunner().invoke(app, line)
        if done.exit_code and not (name == "verify" and done.stdout):  # 1: something is wrong
            return {"error": done.stderr}
        return json.loads(done.stdout)

    def http(self, name: str, folder: str, ask: dict[str, Any]) -> Any:
        given = dict(ask)
        runs = self._runs(folder, given.pop("where", None))
        several = SEVERAL.get(name, {}).items()
        given |= {many: [key] for many, one in several if one in given and (key := given.pop(one))}
        if name == "series":
            given |= {"points": None, "fields": FIELDS} | given
            given["keys"] = [given["keys"]] if isinstance(given["keys"], str) else given["keys"]
        given["runs"] = [self.keys[str(Path(str(row["path"])).resolve())] for row in runs.rows()]
        if name == "shared_prompts":
            known = {run.name: self.keys[str(Path(run.path).resolve())] for run in runs}
            of = {one: known.get(given[one], given[one]) for one in ("run", "other")}
            place = f"/api/runs/{of['run']}/shared-prompts"
            given = {option: value for option, value in given.items() if option not in ("run", "runs")} | of
            response = self.clients[folder].get(place, params={n: v for n, v in given.items() if n != "run"})
        else:
            response = self.clients[folder].post(f"/api/{name}", json=given)
        if response.headers["content-type"] == MEDIA_TYPE:
            frames = list(unpack(response.content))
            entries = [entry for header, _ in frames for entry in header["entries"]]
            arrays = [of_entry for _, some in frames for of_entry in some.values()]
            answer = {"entries": entries, "arrays": arrays}
            for header, _ in frames:
                if all("error" in entry for entry in header["entries"]):
                    answer["error"] = header["entries"][0]["error"]
        else:
            answer = response.json()
        if "error" in answer:
            return {"error": " ".join(filter(None, [answer["error"]["message"], answer["error"]["hint"]]))}
        return answer

    def mcp(self, name: str, folder: str, ask: dict[str, Any]) -> Any:
        tool = next(one for one in self.tools[folder] if one.__name__ == name)
        try:
            return json.loads(tool(**({"points": None} if name == "series" else {}) | ask))
        except RollbookError as err:
            return {"error": str(err)}

    def _runs(self, folder: str, where: str | None) -> RunSet:
        return chosen(self.root / folder, where)


@functools.cache
def chosen(folder: Path, where: str | None) -> RunSet:
    """A notebook keeps what it opened, too."""
    runs = rollbook.open(folder)
    return runs if where is None else runs.where(where)


# -- the doors are made of the struct


@pytest.mark.parametrize("question", QUESTIONS, ids=name_of)
def test_a_method_has_the_names_types_defaults_and_words_of_its_question(question: type[Question]) -> None:
    method = getattr(RunSet, name_of(question))
    signature = inspect.signature(method)
    parameters = {name: one for name, one in signature.parameters.items() if name != "self"}
    assert list(parameters) == [option.name for option in options(question)]
    documented = words_of_arguments(method)
    for option in options(question):
        default = inspect.Parameter.empty if option.default is msgspec.NODEFAULT else option.default
        assert parameters[option.name].default == default, option.name
        hint = eval(parameters[option.name].annotation, vars(sys.modules[RunSet.__module__]))
        assert own_types(option) == own_types(option._replace(type=hint)), option.name
        assert documented[option.name] == option.words


@pytest.mark.parametrize("question", QUESTIONS, ids=name_of)
def test_every_door_offers_the_options_of_a_question_and_adds_none_that_changes_a_number(
    question: type[Question], root: Path
) -> None:
    every = {option.name for option in options(question)}
    reading = {option.name for option in options(question) if not option.writes}
    command = app.get_command(None, command_of(name_of(question)))  # type: ignore[arg-type]
    assert command is not None
    assert {one.name for one in command.params} - (OWN["cli"] - every) == every
    shape = next(one.ask for one in ENDPOINTS if one.ask.__name__ == f"{title_of(question)}Ask")
    several = SEVERAL.get(name_of(question), {})
    fields = {several.get(field.name, field.name): field for field in msgspec.structs.fields(shape)}
    assert set(fields) - OWN["http"] == reading
    tool = next(one for one in AgentTools(root / "runs").tools() if one.__name__ == name_of(question))
    offered = inspect.signature(tool).parameters
    assert set(offered) - OWN["mcp"] == reading
    for option in options(question):
        if not (option.writes or option.amount) and option.default is not msgspec.NODEFAULT:
            assert offered[option.name].default == option.default
            if option.name not in several.values():  # of several, a request names each
                assert fields[option.name].default == option.default


# -- the answers are the same


ASKED: dict[str, list[dict[str, Any]]] = {
    "series": [
        {"keys": KEY, "points": 7},
        {"keys": KEY, "attempts": "all", "where": "name = 'resumed'"},
        {"keys": KEY, "points": 10, "start": 50, "stop": 150, "where": "project = 'lengths'"},
        {"keys": KEY},
        {"keys": KEY, "points": 100, "where": "project = 'lengths'"},
        {"keys": KEY, "attempts": [1], "where": "name = 'resumed'"},
        {"keys": KEY, "x": "relative", "points": 5, "where": "project = 'lengths'"},
        {"keys": KEY, "x": "time", "where": "project = 'study'"},
        {"keys": KEY, "x": "gradient_step", "where": "project = 'study'"},
        {"keys": KEY, "x": "gradient_step", "where": "project = 'lengths'"},
        {"keys": "update/loss", "x": KEY},
        {"keys": [KEY, "update/loss", "part1/key7"], "points": 3},
        {"keys": "train/return", "folder": "foreign"},
        {"keys": "nothing/at/all"},
        {"keys": KEY, "points": 0},
        {"keys": KEY, "start": 5, "stop": 4},
    ],
    "diff": [
        {},
        {"kinds": ["config"]},
        {"kinds": ["code", "packages", "machine", "attempt"]},
        {"metric": KEY, "where": "project = 'study'"},
        {"metric": KEY, "score": "last", "by": "config.algo", "where": "project = 'lengths'"},
        {"by": "auto", "where": "project = 'study'", "kinds": ["config"]},
        {"by": "name", "where": "project = 'study'"},
        {"by": "config.algo,config.lr", "where": "project = 'study'", "kinds": ["config"]},
        {"folder": "foreign"},
        {"where": "name = 'healthy'"},
        {"by": "config.nothing"},
        {"metric": "nothing/at/all", "where": "project = 'study'"},
    ],
    "compare": [
        {"where": "project = 'lengths'"},
        {"folder": "foreign", "by": "name"},
        {"metric": KEY, "by": "config.algo", "where": "project = 'lengths'", "at": 100, "score": "last"},
        {"metric": KEY, "by": "config.algo", "where": "project = 'study'", "statistic": "mean", "direction": "lower",
         "score": "best", "floor": 1.0},
        {"where": "project = 'wide'"},
        {"metric": KEY, "by": "config.algo", "where": "project = 'lengths'"},
        {"metric": KEY, "by": "config.algo", "where": "project = 'lengths'", "at": "common end"},
        {"metric": KEY, "by": "config.algo", "where": "project = 'study'"},
        {"metric": KEY, "by": "config.algo", "where": "project = 'study'", "score": "last", "floor": 1.0},
        {"metric": KEY, "by": "config.algo", "where": "project = 'study'", "score": "steps to 5", "statistic": "mean"},
        {"metric": KEY, "by": "name", "where": "project = 'study'", "at": "common end", "direction": "lower"},
        {"metric": KEY, "by": "config.lr", "where": "project = 'study'", "score": "best"},
        {"metric": KEY, "by": "config.algo", "where": "project = 'study'", "paired": True},
        {"metric": KEY, "by": "config.algo", "where": "project = 'lengths'", "against": "nobody"},
        {"metric": "update/loss", "by": "config.algo"},
        {"metric": "train/return", "by": "name", "folder": "foreign"},
        {"metric": "nothing/at/all", "by": "config.algo", "where": "project = 'lengths'"},
        {"metric": KEY, "by": "config.nothing", "where": "project = 'lengths'"},
        {"metric": KEY, "by": "config.algo", "where": "project = 'lengths'", "score": "the third"},
        {"metric": KEY, "by": "auto", "where": "project = 'study'"},
        {"metric": KEY, "where": "project = 'study'"},
        {"metric": KEY, "by": "config.algo, config.lr", "where": "project = 'study'"},
        {"metric": KEY, "by": "config.algo, auto", "where": "project = 'study'"},
        {"metric": KEY, "by": "config.algo,config.nothing", "where": "project = 'study'"},
        {"metric": KEY, "by": f'last("{KEY}")', "where": "project = 'study'"},
    ],
    "curves": [
        {"key": "", "where": "project = 'lengths'", "points": 5},
        {"key": KEY, "by": "config.algo", "where": "project = 'study'", "points": 7, "statistic": "mean",
         "crashed_as": "hold", "nan": "drop"},
        {"key": KEY, "by": "name", "where": "project = 'lengths'", "points": 9, "start": 50, "stop": 150, "level": 0.8,
         "window": 60, "reduce": "min"},
        {"key": KEY, "by": "config.algo", "where": "project = 'lengths'", "points": 5, "x": "relative",
         "whole_curve": True, "seed": 3},
        {"key": KEY, "whole_curve": True, "statistic": "median", "where": "project = 'lengths'"},
        {"key": "train/return", "by": "name", "folder": "foreign", "points": 5},
        {"key": "nothing/at/all", "by": "config.algo", "where": "project = 'study'"},
        {"key": KEY, "by": "config.nothing"},
        {"key": KEY, "by": "config.algo", "level": 0.2},
        {"key": KEY, "by": "config.algo", "where": "project = 'lengths'", "points": 20},
        {"key": KEY, "by": "config.algo", "where": "project = 'study'", "points": 7, "statistic": "mean"},
        {"key": KEY, "by": "auto", "where": "project = 'study'", "points": 7, "crashed_as": "hold", "nan": "drop"},
        {"key": KEY, "where": "project = 'lengths'", "points": 9, "start": 50, "stop": 150, "level": 0.8},
        {"key": KEY, "by": "name", "where": "project = 'lengths'", "points": 5, "window": 20, "reduce": "max"},
        {"key": KEY, "by": "name", "where": "project = 'study'", "points": 5, "x": "gradient_step"},
        {"key": "update/loss", "by": "config.algo", "points": 5},
        {"key": KEY, "where": "project = 'study'", "points": 5},
        {"key": KEY, "where": "name = 'healthy'", "points": 5},
        {"key": KEY, "by": None, "where": "project = 'study'", "points": 5},
        {"key": KEY, "by": "config.algo,config.lr", "where": "project = 'study'", "points": 5},
    ],
    "seeds": [
        {"where": "project = 'lengths'"},
        {"metric": KEY, "by": "config.algo", "where": "project = 'lengths'", "difference": 40.0, "power": 0.9,
         "score": "steps to 5", "against": "a"},
        {"metric": KEY, "by": "config.algo", "where": "project = 'lengths'"},
        {"metric": KEY, "by": "config.algo", "where": "project = 'lengths'", "difference": 40.0, "power": 0.9},
        {"metric": KEY, "by": "config.algo", "where": "project = 'lengths'", "score": "last", "against": "a"},
        {"metric": KEY, "by": "config.algo", "where": "project = 'lengths'", "power": 2.0},
        {"metric": KEY, "by": "name", "where": "project = 'study'"},
        {"metric": KEY, "by": "config.algo,config.lr", "where": "project = 'study'"},
        {"metric": KEY, "where": "project = 'lengths'"},
        {"metric": "nothing/at/all", "by": "config.algo", "where": "project = 'study'"},
    ],
    "shared_prompts": [
        {"folder": "prompts", "run": "right", "other": "again"},
        {"folder": "prompts", "run": "again", "other": "right", "part": "format"},
        {"folder": "prompts", "run": "right", "other": "styled", "limit": 1, "above": 0.5},
        {"folder": "prompts", "run": "long", "other": "right", "limit": 1},
        {"folder": "prompts", "run": "right", "other": "styled", "above": 0.5},
        {"folder": "prompts", "run": "right", "other": "again", "part": "style"},
        {"folder": "prompts", "run": "right", "other": "nobdy"},
        {"run": "healthy", "other": "two clocks"},
    ],
    "findings": [{}, {"where": "project = 'lengths'"}, {"since": 4e9}, {"folder": "foreign"}],
    "alerts": [{}, {"where": "project = 'lengths'"}, {"since": 4e9}, {"folder": "foreign"}],
    "verify": [
        {"where": "name in ('resumed', 'crashed', 'running')"},
        {"quick": True, "where": "name = 'resumed'"},
        {"folder": "foreign"},
        {"where": "project = 'study'"},
        {},
    ],
    "plans": [{}, {"folder": "foreign"}],
    "sweep": [
        {},
        {"metric": KEY, "project": "lengths", "at": "common end", "score": "best", "direction": "lower"},
        {"metric": KEY, "project": "study"},
        {"metric": KEY, "project": "lengths", "at": 100},
        {"where": "project = 'wide'"},
        {"folder": "foreign", "metric": "train/return"},
        {"metric": "nothing/at/all", "project": "study"},
        {"metric": KEY, "project": "nowhere"},
    ],
}  # fmt: skip
"""First, those that give several options at once: `make test` asks a question only where one of its options is new."""


def numbers_of_comparison(answer: Any) -> dict[str, Any]:
    return {
        "sentences": answer.sentences(),
        "pairs": [
            (pair.a, pair.b, *(getattr(pair.verdict, name) if pair.verdict else None for name in OF_VERDICT))
            for pair in answer.pairs
        ],
        "groups": {
            group.label: (
                len(group.seeds_R),
                *(
                    (None, None, None)
                    if group.interval is None
                    else (group.interval.estimate, group.interval.low, group.interval.high)
                ),
            )
            for group in answer.groups
        },
    }


OF_VERDICT = ("better", "p", "limit", "look", "any_shape", "holds", "enough", "more")
"""What every door tells of a verdict. HTTP calls the winner so: `better` is a chance there, as before."""


def numbers_of_sweep(answer: Any) -> dict[str, Any]:
    return {
        "sentences": answer.sentences(),
        "settings": [(each["setting"], of_json(each["share"]), of_json(each["low"])) for each in answer.settings()],
        "tried": [
            (each["configuration"], of_json(each["mean"]), of_json(each["std"]), each["may_be_best"], each["crashed"])
            for each in answer.table()
        ],
    }


def of_json(number: Any) -> Any:
    """A number as JSON has it: NaN is nothing."""
    return None if isinstance(number, str) or number != number else number


def numbers_of_curves(answer: Any) -> dict[str, Any]:
    return {"sentences": answer.sentences(), "axis": answer.axis, "points": points_of(answer.table(), answer.axis)}


def points_of(rows: list[dict[str, Any]], axis: str) -> list[Any]:
    return [[row["group"], *(of_json(row[name]) for name in (axis, "centre", "low", "high", "n"))] for row in rows]


def plan_of(answer: dict[str, Any]) -> dict[str, Any]:
    return {
        name: answer[name] for name in ("sentences", "std", "seeds_needed", "fewest", "pairs_compared", "detectable")
    }


def findings_of(rows: list[dict[str, Any]]) -> list[Any]:
    return [[row[name] for name in ("level", "rule", "runs", "message", "key", "axis", "x", "seconds")] for row in rows]


def plan_words(plan: dict[str, Any]) -> list[Any]:
    return [plan["name"], plan["seeds"], plan["first_look"], [verdict["sentence"] for verdict in plan["verdicts"]]]


ALERT = ("run", "project", "name", "seconds", "level", "rule", "key", "message", "clocks")
CURVE = ("x", "centre", "low", "high", "count")


def face_of_series(answer: Any) -> dict[str, Any]:
    return {
        "sentences": answer.sentences(),
        "series": {f"{head['run']} {head['key']}": [head[name] for name in HEAD] for head, _ in answer.each()},
        "drawn": [[row["run"], row["key"], *(word_of(row[n]) for n in POINT)] for row in answer.table()],
    }


HEAD, POINT = ("axis", "points", "rows", "non_finite"), ("x", "mean", "min", "max", "rows")


def face_of_diff(answer: Any) -> dict[str, Any]:
    return {
        "sentences": answer.sentences(),
        "equal": len(answer.equal),
        "rows": differences(answer.table().to_pylist()),
    }


def differences(rows: list[dict[str, Any]]) -> list[Any]:
    return [[row[name] for name in ("kind", "name", "value", "n", "mean", "explained")] for row in rows]


def face_of_prompts(answer: Any) -> dict[str, Any]:
    return {"sentences": answer.sentences(), **answer.as_data(), "prompts": pairs_of(answer.table())}


OF_TWO = ("measure", "parts", "above", "shared", "only", "mean", "better", "worse")


def pairs_of(rows: list[dict[str, Any]]) -> list[Any]:
    return [[row["prompt"], *([row[n], row[f"{n}_other"]] for n in ("n", "mean", "solved", "example"))] for row in rows]


FACES: dict[str, Callable[[Any], Any]] = {
    "series": face_of_series,
    "diff": face_of_diff,
    "compare": numbers_of_comparison,
    "curves": numbers_of_curves,
    "sweep": numbers_of_sweep,
    "seeds": lambda answer: plan_of({**answer.as_data(), "sentences": answer.sentences()}),
    "findings": lambda answer: {"sentences": answer.sentences(), "findings": findings_of(answer.table())},
    "alerts": lambda rows: [[row[name] for name in ALERT] for row in rows],
    "verify": lambda answer: {run.id: [*map(str, run.problems)] for run in answer.runs},
    "shared_prompts": face_of_prompts,
    "plans": lambda plans: [plan_words(plan) for plan in plans],
}


def series_of(door: str, answer: Any, wanted: dict[str, Any], ids: dict[str, str]) -> Any:
    """The same of a door. The page draws means of stretches with numbers of four bytes; a row is exact."""
    if door == "cli":
        heads, points, sentences = answer["series"], answer["points"], answer["sentences"]
    elif door == "mcp":
        sentences = [row["sentence"] for row in answer["rows"] if "sentence" in row]
        heads, points = [], []
        for row in answer["rows"]:
            if isinstance(row, list):
                cells = row if len(row) > 2 else [row[0], *[row[1]] * 3, int(not isinstance(word_of(row[1]), str))]
                points.append(
                    {"run": heads[-1]["run"], "key": heads[-1]["key"], **dict(zip(POINT, cells, strict=True))}
                )
            elif "key" in row:
                heads.append(row)
    else:
        sentences = [note for entry in answer["entries"] for note in entry.get("notes", [])]
        heads, points = [], []
        for entry, of_entry in zip(answer["entries"], answer["arrays"], strict=True):
            run, bad = ids[entry["run"]], of_entry.get("bad.count", [])
            if "n" in entry or "error" in entry:
                heads.append({"run": run, "key": entry["key"], "axis": entry["x"], "points": entry.get("n", 0),
                              "rows": entry.get("rows", 0), "non_finite": int(sum(bad))})  # fmt: skip
            if entry["kind"] == "raw":
                rows = zip(of_entry["x"].tolist(), of_entry["y"].tolist(), strict=True)
                cells = [(x, y, y, y, int(not isinstance(word_of(y), str))) for x, y in rows]
            else:
                cells = zip(*(of_entry[name].tolist() for name in ("x", *FIELDS)), strict=True) if of_entry else ()
            points += [{"run": run, "key": entry["key"], **dict(zip(POINT, one, strict=True))} for one in cells]
    drawn = [[row["run"], row["key"], *(word_of(row[n]) for n in POINT)] for row in points]
    if door == "http":
        near = [
            [*w[:2], *(c if isinstance(c, str) else pytest.approx(c, rel=1e-5, abs=1e-2) for c in w[2:])]
            for w in wanted["drawn"]
        ]
        wanted["drawn"] = [w if d == w else n for d, w, n in zip(drawn, wanted["drawn"], near, strict=True)]
    series = {f"{head['run']} {head['key']}": [head[name] for name in HEAD] for head in heads}
    return {"sentences": sentences, "series": series, "drawn": drawn}


def diff_of(door: str, answer: Any) -> Any:
    """The same of a door."""
    if door == "http":
        rows = [{**row, **one} for row in answer["rows"] for one in row["found"]]
        return {"sentences": answer["sentences"], "equal": answer["equal"], "rows": differences(rows)}
    rows = answer["differences"] if door == "cli" else [row for row in answer["rows"] if "name" in row]
    sentences = answer["sentences"] if door == "cli" else [r["sentence"] for r in answer["rows"] if "sentence" in r]
    return {"sentences": sentences, "equal": answer["equal"], "rows": differences(rows)}


def verified_by(door: str, answer: Any) -> dict[str, list[str]]:
    """The problems of each run by its id."""
    if door == "cli":
        return {Path(folder).name.rpartition("-")[2]: problems for folder, problems in answer.items()}
    if door == "http":
        return {one["id"]: one["problems"] for one in answer["runs"]}
    sound: dict[str, list[str]] = {row["id"]: [] for row in answer["rows"] if "sound" in row}
    for row in answer["rows"]:
        if "problem" in row:
            sound.setdefault(row["id"], []).append(row["problem"])
    return sound


def face_of(door: str, name: str, answer: Any) -> Any:
    """The numbers and words of an answer, as `FACES` makes them."""
    if name == "diff":
        return diff_of(door, answer)
    if name == "verify":
        return verified_by(door, answer)
    if name == "seeds":
        rows = answer.get("rows", [])
        said = {"sentences": [row["sentence"] for row in rows if "sentence" in row]} if door == "mcp" else {}
        return plan_of({**answer, **said, **({"detectable": [r for r in rows if "seeds" in r]} if rows else {})})
    if name == "findings":
        if door == "mcp":
            rows = [row for row in answer["rows"] if "sentence" not in row]
            words = [row["sentence"] for row in answer["rows"] if "sentence" in row]
        elif door == "http":
            words = answer["sentences"]
            rows = [
                {**each, "runs": each["many"], **{n: first[n] for n in ("key", "axis", "x")}, "seconds": first["time"]}
                for each in answer["findings"]
                for first in each["runs"][:1]
            ]
        else:
            rows, words = answer["findings"], answer["sentences"]
        return {"sentences": words, "findings": findings_of(rows)}
    if name == "shared_prompts":
        rows = answer["rows"] if door != "cli" else answer["prompts"]
        words = answer.get("sentences") or [row["sentence"] for row in rows if "sentence" in row]
        pairs = [[row["prompt"], row["n"], row["mean"], row["solved"], row["example"]] for row in rows if "n" in row]
        pairs = pairs if door == "http" else pairs_of([row for row in rows if "n" in row])
        numbers = {one: answer[one] for one in OF_TWO}
        numbers["mean"] = None if numbers["mean"] == [None, None] else numbers["mean"]
        return {"sentences": words, **numbers, "prompts": pairs}
    if name == "alerts":
        rows = {"cli": lambda: answer, "mcp": lambda: answer["rows"][::-1], "http": lambda: answer["alerts"]}[door]()
        return [[row[column] for column in ALERT] for row in rows]
    if name == "plans":
        plans = answer if door == "cli" else answer["rows" if door == "mcp" else "plans"]
        return [plan_words(plan) for plan in plans]
    if name == "curves":
        if door == "http":
            many = sum(entry["kind"] == "curve" for entry in answer["entries"]) > 1
            said = [(entry["group"], entry.get("remarks", [])) for entry in answer["entries"]]
            of_groups = [f"{group}: {word}" if many else word for group, words in said for word in words]
            return {
                "sentences": [*answer["entries"][0].get("notes", []), *of_groups],
                "axis": answer["entries"][0]["x"],
                "points": [
                    [entry["group"], *(number if number == number else None for number in cells)]
                    for entry, of_entry in zip(answer["entries"], answer["arrays"], strict=True)
                    if entry["kind"] == "curve"
                    for cells in zip(*(of_entry[name].tolist() for name in CURVE), strict=True)
                ],
            }
        rows = answer["points"] if door == "cli" else [row for row in answer["rows"] if "group" in row]
        sentences = answer["sentences"] if door == "cli" else [r["sentence"] for r in answer["rows"] if "sentence" in r]
        return {"sentences": sentences, "axis": answer["axis"], "points": points_of(rows, answer["axis"])}
    if name == "compare":
        if door == "http":
            groups = {g["name"]: (g["n"], g["centre"], g["low"], g["high"]) for g in answer["groups"]}
            pairs = [(p["a"], p["b"], p["winner"], *(p[name] for name in OF_VERDICT[1:])) for p in answer["pairs"]]
            return {"sentences": answer["sentences"], "groups": groups, "pairs": pairs}
        rows = answer["groups"] if door == "cli" else [row for row in answer["rows"] if "group" in row]
        sentences = answer["sentences"] if door == "cli" else [r["sentence"] for r in answer["rows"] if "sentence" in r]
        statistic = next((s for s in ("iqm", "mean", "median") if rows and s in rows[0]), "iqm")
        return {
            "sentences": sentences,
            "pairs": [
                (p["a"], p["b"], *(p.get(name) for name in OF_VERDICT))
                for p in (answer["pairs"] if door == "cli" else [row for row in answer["rows"] if "pair" in row])
            ],
            "groups": {row["group"]: (row["n"], row[statistic], row["low"], row["high"]) for row in rows},
        }
    if door == "http":
        return {
            "sentences": [word for word in (answer["sentence"], answer["todo"], *answer["notes"]) if word],
            "settings": [(each["column"], each["share"], each["low"]) for each in answer["settings"]],
            "tried": [
                (each["name"], each["mean"], each["std"], each["may_be_best"], each["crashed"])
                for each in answer["configurations"]
            ],
        }
    rows = answer["rows"] if door == "mcp" else []
    settings = [row for row in rows if "setting" in row] if rows else answer["settings"]
    tried = [row for row in rows if "configuration" in row] if rows else answer["configurations"]
    return {
        "sentences": [row["sentence"] for row in rows if "sentence" in row] if rows else answer["sentences"],
        "settings": [(each["setting"], of_json(each["share"]), of_json(each["low"])) for each in settings],
        "tried": [
            (each["configuration"], of_json(each["mean"]), of_json(each["std"]), each["may_be_best"], each["crashed"])
            for each in tried
        ],
    }


def gives_something_new(case: tuple[str, dict[str, Any]]) -> bool:
    """An option that no case before it gives, or a name that nothing has."""
    name, ask = case
    before = ASKED[name][: ASKED[name].index(ask)]
    return "nothing" in str(ask) or not before or bool(set(ask) - {option for one in before for option in one})


@pytest.mark.parametrize(
    ("name", "ask"),
    some_of([(name, ask) for name, asks in ASKED.items() for ask in asks], gives_something_new),
    ids=lambda value: str(value)[:70],
)
def test_every_door_gives_the_same_numbers_words_and_errors(name: str, ask: dict[str, Any], doors: Doors) -> None:
    given = dict(ask)
    folder = given.pop("folder", "runs")
    answers = {door: getattr(doors, door)(name, folder, given) for door in ("cli", "http", "mcp")}
    expected = doors.python(name, folder, given)
    for door, answer in answers.items():
        if "error" in expected:
            assert expected["error"] in answer["error"].replace("\n", " "), door
            continue
        wanted = json.loads(json.dumps(expected))
        if name == "series":
            ids = {key: Path(path).name.rpartition("-")[2] for path, key in doors.keys.items()}
            assert series_of(door, answer, wanted, ids) == wanted, door
            continue
        face = json.loads(json.dumps(face_of(door, name, answer)))
        if door == "http" and "points" in wanted:
            wanted["points"], face["points"] = drawn_points(wanted["points"], face["points"])
        assert face == wanted, door


def test_runs_that_are_not_there_are_missed_in_the_same_words_by_every_door(doors: Doors) -> None:
    runs = rollbook.open(doors.root / "runs")
    tools = {tool.__name__: tool for tool in doors.tools["runs"]}
    place, client = ["--dir", str(doors.root / "runs")], doors.clients["runs"]

    def said(ask: Callable[[], Any]) -> str:
        try:
            answer = ask()
        except RollbookError as err:
            return " ".join(str(err).split())
        if isinstance(answer, dict):
            return " ".join(filter(None, [answer["error"]["message"], answer["error"]["hint"]]))
        return " ".join(answer.stderr.removeprefix("Error: ").split())

    told = {
        said(ask)
        for ask in (
            lambda: runs.named("nobdy"),
            lambda: runs.one("nobdy"),
            lambda: CliRunner().invoke(app, ["compare", "nobdy", "-m", KEY, *place]),
            lambda: CliRunner().invoke(app, ["show", "nobdy", *place]),
            lambda: tools["compare"](metric=KEY, runs="nobdy"),
            lambda: tools["probe"](of="nobdy"),
            lambda: client.get("/api/runs/nobdy").json(),
            lambda: client.post("/api/compare", json={"metric": KEY, "runs": ["nobdy"]}).json(),
        )
    }
    assert len(told) == 1, told
    assert "there is no run 'nobdy' below" in told.pop()
    none = "project = 'nowhere'"
    told = {
        said(lambda: CliRunner().invoke(app, ["compare", "-m", KEY, "--where", none, *place])),
        said(lambda: tools["compare"](metric=KEY, where=none)),
    }
    assert len(told) == 1, told
    empty = said(lambda: runs.where(none).compare(KEY))
    assert empty == said(lambda: client.post("/api/compare", json={"metric": KEY, "runs": []}).json())
    assert "the set is empty" in empty


def drawn_points(wanted: list[Any], drawn: list[Any]) -> tuple[list[Any], list[Any]]:
    """The points that the page draws, as they are wanted: where a line bends, as numbers of four bytes."""
    places = {tuple(point[:2]) for point in drawn}
    assert {point[0] for point in wanted} == {group for group, _ in places}
    kept = [point for point in wanted if tuple(point[:2]) in places]
    near = [
        [*point[:2], *(None if cell is None else pytest.approx(cell, rel=1e-5, abs=1e-6) for cell in point[2:])]
        for point in kept
    ]
    return near, drawn


def test_every_question_is_asked() -> None:
    assert set(ASKED) == {name_of(question) for question in QUESTIONS}


@pytest.mark.long  # three thousand keys
def test_a_copy_has_the_numbers_and_words_of_the_server(doors: Doors, tmp_path: Path) -> None:
    """What it recorded: series, differences, comparisons, sweeps and findings."""
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text('<!doctype html><head><meta name="rollbook" content="live"></head>')
    export([str(doors.root / "runs")], tmp_path / "copy", page=page)
    data, client = tmp_path / "copy" / "data", doors.clients["runs"]

    def recorded(name: str) -> Any:
        return json.loads((data / name).read_text("utf-8"))

    def asked(name: str, ask: dict[str, Any]) -> Any:
        answer = client.post(f"/api/{name}", json=ask).json()
        return {field: value for field, value in answer.items() if field != "took_ms"}

    for key in doors.keys.values():
        if not (data / "series" / key / "index.json").is_file():
            continue  # of the other folder
        for name, files in recorded(f"series/{key}/index.json").items():
            if name in (KEY, "update/loss"):
                ((header, arrays),) = unpack((data / "series" / key / files["default"]).read_bytes())
                ask = {"runs": [key], "keys": [name], "points": POINTS_OF_A_COPY, "ghosts": True}
                ((live, drawn),) = unpack(client.post("/api/series", json=ask).content)
                told = [[entry | {"version": ""} for entry in one["entries"]] for one in (header, live)]
                assert told[0] == told[1]  # the version of a run that goes on has the time in it
                for mine, theirs in zip(arrays.values(), drawn.values(), strict=True):
                    assert {n: a.tobytes() for n, a in mine.items()} == {n: a.tobytes() for n, a in theirs.items()}
    compared, names = 0, {}
    for one in recorded("compare/index.json"):
        if one["key"] is None:
            groups = recorded(f"compare/{one['file']}")["groups"]
            names |= {tuple(runs): name for name, runs in zip(groups, one["runs"], strict=True)}
    for one in recorded("compare/index.json"):
        stored = recorded(f"compare/{one['file']}")
        by = [{"name": names[tuple(runs)], "runs": runs} for runs in one["runs"]]
        if one["key"] is None:
            live = asked("diff", {"by": by, "kinds": ["config"]})
        else:
            live = asked("compare", {"by": by, "metric": one["key"]})
        assert {field: value for field, value in stored.items() if field != "took_ms"} == live
        compared += 1
    assert compared
    projects = set()
    for one in recorded("sweep/index.json"):  # the first of a project is of the score that nobody has named
        named = {"metric": one["key"]} if one["project"] in projects else {}
        projects.add(one["project"])
        live = asked("sweep", {"project": one["project"], **named})
        assert {f: v for f, v in recorded(f"sweep/{one['file']}").items() if f != "took_ms"} == live
    assert recorded("findings.json")["sentences"] == asked("findings", {})["sentences"]


# -- one default axis


AXES: list[tuple[dict[str, int], dict[str, Any], str]] = [
    ({"episode": 1, "step": 2}, {}, "step"),
    ({"episode": 1, "epoch": 2}, {}, "epoch"),
    ({"episode": 1, "policy_version": 2}, {}, "episode"),
    ({"tokens": 3, "env_step": 1}, {"clocks": ["tokens"], "total": {"tokens": 100}}, "tokens"),
    ({"tokens": 3, "env_step": 1}, {"clocks": ["tokens"]}, "env_step"),
    ({"env_step": 1}, {"total": {"epoch": 9}}, "env_step"),
    ({}, {}, "time"),
]


def test_the_axis_that_nobody_named_is_the_same_by_every_door(tmp_path: Path) -> None:
    expected = {}
    for number, (clocks, given, axis) in enumerate(AXES):
        quiet: dict[str, Any] = {"sinks": [], "rules": (), "keeper": "inline", "dir": tmp_path}
        with rollbook.init("p", f"run {number}", **quiet, **given) as run:
            run.log({"a": 1.0, "b": 2.0}, **clocks)
            expected[run.id] = axis
    runs = rollbook.open(tmp_path)
    assert {run.id: run.series("a").axis for run in runs} == expected
    assert {run.id: run.batch(["a", "b"])["b"].axis for run in runs} == expected
    with client_of(tmp_path) as client:
        for key, axis in expected.items():
            assert client.post("/api/keys", json={"runs": [key]}).json()["default_x"] == axis
            ((header, _),) = unpack(client.post("/api/series", json={"runs": [key], "keys": ["a"]}).content)
            assert header["entries"][0]["x"] == axis
        table = until(lambda: client.post("/api/runs", json={"sections": False, "columns": ['last("a")']}).json())
        assert {row["run"]: row.get("x") or "time" for row in table["rows"]} == expected


# -- one language of columns


MEASURES = [
    f'last("{KEY}")', f'best("{KEY}")', f'min("{KEY}")', f'mean("{KEY}", last="10%")', f'max("{KEY}", last=2)',
    "duration", "worked", f'steps_to(5, "{KEY}")', f'area("{KEY}")', 'last("update/loss")',
]  # fmt: skip


def test_the_hard_runs_are_of_every_kind(doors: Doors) -> None:
    """Else what is asked of them says nothing about a run that goes on, was resumed, or was rewound."""
    rows = {str(row["name"]): row for row in rollbook.open(doors.root / "runs").rows()}
    assert {row["status"] for row in rows.values()} == {"finished", "crashed", "running"}
    assert {name for name, row in rows.items() if row["attempts"] > 1} == {"resumed", "rewound"}
    assert all(row["made_by"] for row in rollbook.open(doors.root / "foreign").rows())


@pytest.mark.parametrize("folder", ["runs", "foreign"])
def test_a_number_of_a_key_is_the_same_in_every_table(folder: str, doors: Doors) -> None:
    runs = rollbook.open(doors.root / folder)
    measures = MEASURES if folder == "runs" else ["duration", "worked", 'last("train/return")', 'best("train/return")']
    going_on = {str(row["id"]) for row in runs.rows() if row["status"] == "running"}

    def told_of(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """What does not change while a run goes on: its time at work does."""
        return plain({n: row | ({"worked": "…"} if n in going_on else {}) for n, row in rows.items()})

    expected = told_of({row["id"]: row for row in runs.table(["id", *measures]).to_pylist()})
    if folder == "runs":
        assert str(expected[of_name(runs, "diverged")][MEASURES[0]]) == "nan"
        assert expected[of_name(runs, "diverged")][MEASURES[1]] == 2.0
        assert all(row["duration"] is not None for row in expected.values())
    line = ["ls", "--dir", str(doors.root / folder), "--json", "--limit", "1000", "--columns", ",".join(measures)]
    listed = json.loads(CliRunner().invoke(app, line).stdout)
    assert told_of({row["id"]: {"id": row["id"]} | {c: row[c] for c in measures} for row in listed}) == expected
    told = doors.mcp("runs", folder, {"columns": measures})["rows"]
    assert told_of({row["id"]: {"id": row["id"]} | {c: row[c] for c in measures} for row in told}) == expected
    ask = {"columns": measures, "limit": 1000, "sections": False}

    def settled() -> dict[str, Any] | None:
        answer = doors.clients[folder].post("/api/runs", json=ask).json()
        return None if answer["pending"] else answer

    shown = until(settled)["rows"]
    ids = {key: Path(folder).name.rpartition("-")[2] for folder, key in doors.keys.items()}
    assert told_of({ids[row["run"]]: {"id": ids[row["run"]], **row["cells"]} for row in shown}) == expected


SORTED = ["lr", "width", KEY, "duration", "name", "config.lr", "seed", MEASURES[1], "status", "config.net.width"]


@pytest.mark.parametrize(
    "sort",
    some_of(
        [*SORTED, *(f"-{name}" for name in SORTED)],
        lambda sort: sort in SORTED[::2] or (sort.removeprefix("-") in SORTED[1::2] and sort[0] == "-"),
    ),
)
def test_runs_come_in_the_same_order_by_every_door(sort: str, doors: Doors) -> None:
    """Numbers before texts; what has no number, or NaN, comes last in either direction; equal ones newest first."""
    expected = [str(row["id"]) for row in rollbook.open(doors.root / "runs").sorted(sort).rows()]
    line = ["ls", "--dir", str(doors.root / "runs"), "--json", "--limit", "1000", "--sort", sort]
    assert [row["id"] for row in json.loads(CliRunner().invoke(app, line).stdout)] == expected
    assert [row["id"] for row in doors.mcp("runs", "runs", {"sort": [sort]})["rows"]] == expected
    name = sort.removeprefix("-")
    in_full = {KEY: f'last("{KEY}")', "lr": "config.lr", "width": "config.net.width"}  # as the page names columns
    order = {"column": in_full.get(name, name), "descending": sort.startswith("-")}
    ask = {"sort": [order], "limit": 1000, "sections": False}

    def settled() -> dict[str, Any] | None:
        answer = doors.clients["runs"].post("/api/runs", json=ask).json()
        return None if answer["pending"] else answer

    ids = {key: Path(folder).name.rpartition("-")[2] for folder, key in doors.keys.items()}
    assert [ids[row["run"]] for row in until(settled)["rows"]] == expected


GROUPS = ["auto", "algo, config.lr, width", "config.algo,config.lr", "config.algo"]


@pytest.mark.parametrize("by", some_of(GROUPS, lambda by: by == GROUPS[1]))
def test_what_makes_groups_is_said_in_one_grammar(by: str, doors: Doors) -> None:
    """As one text or as a list, in every answer about groups, and in pictures and reports."""
    runs = rollbook.open(doors.root / "runs").where("project = 'study'")
    fields = by.replace(" ", "").split(",")
    members = {frozenset(str(row["id"]) for row in group.rows()) for group in runs.group_by(fields).values()}
    labels = [group["group"] for group in runs.groups(fields)]
    assert {frozenset(group["runs"]) for group in runs.groups(by)} == members
    spaced = by.replace(",", " , ")
    for given in (spaced, fields):
        assert list(runs.curves(KEY, by=given, points=5).members) == labels
        if by != "auto":  # one seed of each
            assert runs.seeds(KEY, given).as_data() == runs.seeds(KEY, by).as_data()
    for given in (spaced, tuple(fields)):
        compared = [group.label for group in runs.compare(KEY, given).groups]
        assert compared == [label for label in labels if label in compared]  # those with a score
        assert list(runs.diff(by=given).groups) == labels
    drawn = runs.plot(KEY, by=given).bytes("svg").decode()
    assert all(label.split()[0] in drawn for label in labels)
    page = doors.root / "report.html"
    line = ["report", "--dir", str(doors.root / "runs"), "-m", KEY, "--by", by, "--where", "project = 'study'"]
    assert CliRunner().invoke(app, [*line, "-o", str(page)]).exit_code == 0
    assert all(html.escape(label) in page.read_text("utf-8") for label in compared)


@pytest.mark.parametrize("by", some_of(GROUPS, 2))
def test_groups_and_the_centre_of_their_numbers_are_the_same_in_every_table(by: str, doors: Doors) -> None:
    runs = rollbook.open(doors.root / "runs").where("project in ('lengths', 'study')")
    found = runs.groups(by, {KEY: "best"})
    line = ["ls", "--dir", str(doors.root / "runs"), "--by", by, "-m", f"{KEY}=best", "--json"]
    condition = "project in ('lengths', 'study')"
    told = json.loads(CliRunner().invoke(app, [*line, "--where", condition]).stdout)
    assert told == json.loads(json.dumps(found))
    told = doors.mcp("runs", "runs", {"where": condition, "by": by, "metrics": [f"{KEY}=best"]})["rows"]
    assert told == json.loads(json.dumps(found))
    column = f'best("{KEY}")'
    ask = {"columns": [column], "limit": 1000, "filter": "project = 'lengths'", "group_by": by.split(",")}
    ask["sections"] = False

    def settled() -> list[dict[str, Any]] | None:
        answer = doors.clients["runs"].post("/api/runs", json=ask).json()
        return None if answer["pending"] else answer["rows"]

    ids = {key: Path(folder).name.rpartition("-")[2] for folder, key in doors.keys.items()}
    shown = {frozenset(ids[run] for run in row["runs"]): row["cells"][column] for row in until(settled)}
    of_lengths = rollbook.open(doors.root / "runs").where("project = 'lengths'").groups(by, {KEY: "best"})
    assert shown == {frozenset(group["runs"]): group[KEY] for group in of_lengths}


def test_a_run_that_ends_in_nan_is_marked_in_every_list_where_its_number_does_not_show_it(doors: Doors) -> None:
    best = f'best("{KEY}")'
    line = ["ls", "--dir", str(doors.root / "runs"), "--json", "--where", "project = 'study'", "-m", f"{KEY}=best"]
    listed = json.loads(CliRunner().invoke(app, line).stdout)
    names = {row["id"]: row["run"] for row in listed}
    assert {row["run"] for row in listed if row.get("ends in NaN")} == {"study/diverged"}

    def settled(group_by: list[str] | None) -> list[dict[str, Any]] | None:
        ask = {"columns": [best], "limit": 1000, "filter": "project = 'study'", "group_by": group_by}
        answer = doors.clients["runs"].post("/api/runs", json=ask | {"sections": False}).json()
        return None if answer["pending"] else answer["rows"]

    runs = until(functools.partial(settled, None))
    assert [names[row["run"]] for row in runs if row.get("ends_in_nan")] == ["study/diverged"]
    groups = until(functools.partial(settled, ["name"]))
    assert [row["ends_in_nan"] for row in groups if row.get("ends_in_nan")] == [{best: 1}]


@pytest.mark.parametrize(
    "condition",
    [
        f"{MEASURES[0]} > 3",
        "duration > 0.02",
        "duration is null",
        f"{MEASURES[1]} <= 4 and project = 'study'",
        f"{MEASURES[0]} is null",
        "lr = 0.1",
        "width = 64 and algo = 'a'",
        "net.width >= 64 or config.seed = 3",
    ],
)
def test_a_condition_on_a_number_of_a_key_chooses_the_same_runs_by_every_door(condition: str, doors: Doors) -> None:
    expected = {str(row["id"]) for row in rollbook.open(doors.root / "runs").where(condition).rows()}
    line = ["ls", "--dir", str(doors.root / "runs"), "--json", "--where", condition]
    assert {row["id"] for row in json.loads(CliRunner().invoke(app, line).stdout)} == expected
    assert {row["id"] for row in doors.mcp("runs", "runs", {"where": condition})["rows"]} == expected
    ask = {"filter": condition, "limit": 1000, "sections": False}

    def settled() -> dict[str, Any] | None:
        answer = doors.clients["runs"].post("/api/runs", json=ask).json()
        return None if answer["pending"] else answer

    ids = {key: Path(folder).name.rpartition("-")[2] for folder, key in doors.keys.items()}
    assert {ids[row["run"]] for row in until(settled)["rows"]} == expected


def word_of(value: Any) -> Any:
    """A number; one that JSON cannot write as its word."""
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(value, value) if isinstance(value, str) else value


def plain(rows: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON cannot write, as their words."""
    return {name: {column: word_of(value) for column, value in row.items()} for name, row in rows.items()}


def of_name(runs: RunSet, name: str) -> str:
    return next(str(row["id"]) for row in runs.rows() if row["name"] == name)
