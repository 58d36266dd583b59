"""The promise that a question has one answer by every door: each about one run, asked about hard runs."""

from __future__ import annotations

import functools
import inspect
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import rollbook
from agent_rollouts import record_agents
from cases import some_of
from hard_runs import KEY
from page_server import client_of, record_rich
from question_faces import own_types, words_of_arguments
from rollbook.book import Book, RolloutQueries
from rollbook.book.questions import ONE_RUN, LogLine, RolloutAnswer, Rows
from rollbook.cli.app import app
from rollbook.errors import RollbookError
from rollbook.schema.question import Question, name_of, options, title_of
from rollbook.server.agents import AgentTools
from rollbook.server.frames import unpack
from rollbook.server.openapi import ENDPOINTS
from rollbook.server.shared.catalogue import Catalogue
from rollbook.server.tables.timings import Span

_OF_COMMANDS = "run root as_json as_csv everything wide episode help question follow as_list which"
OWN: dict[str, set[str]] = {
    "cli": {*_OF_COMMANDS.split()},
    "http": {"run", "columns", "points", "start", "before"},
    "mcp": {"run", "cursor"},
}
"""What a door may add: which run, how much of the answer, and how it is shown."""

BY_ROWS = ("episodes", "text", "media", "rollouts", "checkpoints")
"""Agents have few tools: they ask for the rows of these tables by `rows`, with a condition for an option of its own."""
BY_ANSWER = {"prompts": "prompts", "rollout_curves": "curves"}
"""They ask for these by the tool `rollouts`."""
IN_PARTS = ("rollout_answer", "rollout_curves")
"""The page shows these answers within others: see `test_the_page_shows_the_answers_about_rollouts`."""
CALLED = {
    "python": {"prompts": "rollout_prompts"},
    "cli": {
        "prompts": "rollouts",
        "rollout_answer": "rollouts",
        "rollout_curves": "rollouts",
        "stages": "timings",
        "log": "logs",
    },
    "mcp": {"rollout_answer": "rollouts", "log": "logs"},
}
"""Door -> question -> its name there, where it has another one."""
OF_ONE_COMMAND = {"rollouts": ["list"], "prompts": ["prompts"], "rollout_curves": ["curves"]}
"""Questions of a command that answers several -> the word for it."""


class Doors(NamedTuple):
    """The doors of one folder; name of a run -> its id, and its name in the API."""

    root: Path
    client: TestClient
    tools: AgentTools
    ids: dict[str, str]
    keys: dict[str, str]

    def python(self, name: str, run: str, ask: dict[str, Any]) -> Any:
        return getattr(self._book(run), called("python", name))(**ask)

    def cli(self, name: str, run: str, ask: dict[str, Any]) -> Any:
        command = app.get_command(None, called("cli", name))  # type: ignore[arg-type]
        assert command is not None
        arguments = [one.name for one in command.params if one.param_type_name == "argument"]
        words = [ask[one] if one in ask else self.ids[run] for one in arguments if one in ask or one == "run"]
        line = [command.name or name, *words, *OF_ONE_COMMAND.get(name, [])]
        line += ["--dir", str(self.root), "--json"]
        for option, value in ask.items():
            for each in value if isinstance(value, list) else [value]:
                if option not in arguments:
                    line += [f"--{option.replace('_', '-')}", *([] if each is True else [str(each)])]
        done = CliRunner().invoke(app, line)
        if done.exit_code:
            raise RollbookError(done.stderr.strip().removeprefix("Error: ").replace("\n", " "))
        return json.loads(done.stdout)

    def http(self, name: str, run: str, ask: dict[str, Any]) -> Any:
        endpoint = next(one for one in ENDPOINTS if one.ask.__name__ == f"{title_of(question_of(name))}Ask")
        path = endpoint.path.replace("{run}", self.keys[run])
        ask = {"stretches": 0, **ask} if name == "stages" else ask
        if endpoint.method == "GET":
            answer = self.client.get(path, params=ask).json()
        else:
            answer = self.client.post(path, json=ask).json()
        if "error" in answer:
            raise RollbookError(" ".join(filter(None, [answer["error"]["message"], answer["error"]["hint"]])))
        return answer

    def mcp(self, name: str, run: str, ask: dict[str, Any]) -> Any:
        if name == "checkpoints":  # with a condition for an option of its own
            ask = dict(ask)
            ask |= {} if ask.pop("everything", False) else {"where": "status = 'kept'"}
        if name in BY_ROWS:
            return json.loads(self.tools.rows(run=self.ids[run], table=name, **ask))
        if name in BY_ANSWER:
            return json.loads(self.tools.rollouts(run=self.ids[run], question=BY_ANSWER[name], **ask))
        return json.loads(getattr(self.tools, called("mcp", name))(run=self.ids[run], **ask))

    def _book(self, run: str) -> Book:
        return book_of(self.root, self.ids[run])


@functools.cache
def book_of(root: Path, run: str) -> Book:
    """A notebook keeps what it opened, too."""
    return rollbook.open(root).one(run)


def called(door: str, name: str) -> str:
    return CALLED[door].get(name, name)


def question_of(name: str) -> type[Question]:
    return next(one for one in ONE_RUN if name_of(one) == name)


def short_name(row: Mapping[str, Any]) -> str:
    return "agents" if row["project"] == "agents" else str(row["name"])


@pytest.fixture(scope="module")
def doors(hard: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    root = Path(shutil.copytree(hard / "runs", tmp_path_factory.mktemp("harder") / "runs"))
    record_rich(root)
    record_agents(root)
    with rollbook.init("p", "saved often", dir=root, sinks=[], keeper="import", rules=()) as run:
        for step in range(6):
            last = run.save_checkpoint(
                {"weights": [step]}, score=[1.0, 5.0, 2.0, 3.0, 5.0, 4.0][step], keep=3, env_step=step
            )
    last.path.unlink()  # by hand, without a word to rollbook
    with rollbook.init("p", "own table", dir=root, sinks=[], keeper="import", rules=()) as run:
        run.record("votes", {"n": [1, 2], "for": ["a", "b"]})
    runs = rollbook.open(root)
    ids = {short_name(row): str(row["id"]) for row in runs.rows()}
    keys = {short_name(row.about): key for key, row in Catalogue([str(root)]).snapshot().rows.items()}
    tools = AgentTools(functools.partial(rollbook.open, root), budget=10_000_000)
    with client_of(root) as client:
        yield Doors(root, client, tools, ids, keys)


# -- the doors are made of the struct


@pytest.mark.parametrize("question", ONE_RUN, ids=name_of)
def test_a_method_has_the_names_types_defaults_and_words_of_its_question(question: type[Question]) -> None:
    method = getattr(Book, called("python", name_of(question)))
    parameters = {name: one for name, one in inspect.signature(method).parameters.items() if name != "self"}
    assert sorted(parameters) == sorted(option.name for option in options(question))
    documented = words_of_arguments(method)
    for option in options(question):
        default = inspect.Parameter.empty if option.default is msgspec.NODEFAULT else option.default
        assert parameters[option.name].default == default, option.name
        hint = eval(parameters[option.name].annotation, vars(sys.modules[Book.__module__]))
        assert own_types(option) == own_types(option._replace(type=hint)), option.name
        assert documented[option.name] == option.words


@pytest.mark.parametrize("question", ONE_RUN, ids=name_of)
def test_every_door_offers_the_options_of_a_question_and_adds_none_that_changes_a_number(
    question: type[Question], doors: Doors
) -> None:
    name, every = name_of(question), {option.name for option in options(question)}
    command = app.get_command(None, called("cli", name))  # type: ignore[arg-type]
    assert command is not None
    shapes = [one.ask for one in ENDPOINTS if one.ask.__name__ == f"{title_of(question)}Ask"]
    assert bool(shapes) != (name in IN_PARTS)
    by_rows = name in (*BY_ROWS, *BY_ANSWER)
    tool = inspect.signature(doors.tools.rows if by_rows else getattr(doors.tools, called("mcp", name))).parameters
    others = {*OF_ONE_COMMAND, *IN_PARTS} if called("cli", name) == "rollouts" else set()
    offered = {
        "cli": {str(one.name) for one in command.params}
        - ({option.name for other in others for option in options(question_of(other))} - every),
        **({"http": {field.name for field in msgspec.structs.fields(shapes[0])}} if shapes else {}),
        **({} if by_rows else {"mcp": set(tool)}),
    }
    for door, names in offered.items():
        assert every <= names, door
        assert names - every <= OWN[door], door
    for option in options(question):
        if option.default is not msgspec.NODEFAULT and not option.amount:
            assert by_rows or tool[option.name].default == option.default
            for shape in shapes:
                fields = {field.name: field.default for field in msgspec.structs.fields(shape)}
                assert fields[option.name] == option.default


# -- the answers are the same


WINDOWS: list[dict[str, Any]] = [
    {}, {"limit": 2}, {"limit": 2, "offset": 1}, {"limit": 0}, {"order_by": "time desc, seq desc", "limit": 3},
    {"limit": -1}, {"offset": -2}, {"where": "nothing > 1"}, {"where": "seq >"}, {"where": "true) or (true"},
    {"where": "1; select 2"}, {"order_by": "nothing"}, {"order_by": "seq limit 1"}, {"attempts": "some"},
    {"attempts": [9]}, {"attempts": [1], "limit": 1}, {"search": "a " * 13},
]  # fmt: skip
"""What may be asked of any window, and what is refused."""
ASKED_OF = {"samples": WINDOWS, "rollouts": WINDOWS[::4], "prompts": WINDOWS[1::4]}
"""One implementation answers them for all tables, two others for rollouts and prompts: `make test` asks each a part."""

ASKED: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "cause": [
        ("grpo", {"at": 1200, "key": "train/reward"}),
        ("grpo", {"at": 1200, "key": "train/reward", "window": 400, "rows": 2}),
        ("grpo", {"at": 1250, "key": "train/reward", "window": 10, "everything": True}),
        ("grpo", {"at": 60, "x": "relative"}),
        ("grpo", {"at": 1.0, "x": "update/kl", "key": "train/reward"}),
        ("diverged", {"at": 2, "key": KEY}),
        ("resumed", {"at": 6, "key": KEY}),
        ("two clocks", {"at": 3, "x": "gradient_step", "key": "update/loss"}),
        ("no row", {"at": 0}),
        ("grün's", {"at": 2, "key": KEY}),
        ("many keys", {"at": 1}),
        ("grpo", {"at": 0, "key": "nothing/at/all"}),
        ("grpo", {"at": 0, "rows": 0}),
    ],
    "samples": [
        *[("grpo", ask) for ask in WINDOWS],
        ("grpo", {"where": "reward > 0", "search": "PLUS 1", "order_by": "reward desc, env_step", "limit": 7}),
        ("grpo", {"unique": True, "order_by": "times_seen desc, sample_id"}),
        ("grpo", {"search": "nobody"}),
        ("grpo", {"where": "reward > (select avg(reward) from samples)", "limit": 2}),
        ("no row", {}),
    ],
    "episodes": [
        *[("grpo", ask) for ask in WINDOWS],
        ("grpo", {"outcome": ["terminated"], "where": '"return" > 100', "limit": 3}),
        ("grpo", {"outcome": ["cut", "truncated"], "order_by": '"return"'}),
        ("grpo", {"video": True}), ("grpo", {"traces": True}),
        ("crashed", {}), ("resumed", {"attempts": "all"}), ("no row", {}),
    ],
    "text": [*[("grpo", ask) for ask in WINDOWS], ("grpo", {"key": "note"}), ("grün's", {}), ("no row", {})],
    "media": [*[("grpo", ask) for ask in WINDOWS], ("grpo", {"kind": "video"}), ("grpo", {"key": "nothing"})],
    "rows": [
        *[("grpo", {"table": "checkpoints", **ask}) for ask in WINDOWS],
        ("grpo", {"table": "alerts", "where": "level = 'warn'"}),
        ("diverged", {"table": "metrics", "limit": 4, "offset": 1}),
        ("resumed", {"table": "metrics", "attempts": "all"}), ("resumed", {"table": "metrics"}),
        ("grpo", {"table": "tabel"}), ("grpo", {"table": "journal"}),
    ],
    "checkpoints": [
        *[("grpo", ask) for ask in WINDOWS],
        ("saved often", {}), ("saved often", {"everything": True}),
        ("saved often", {"everything": True, "where": "status <> 'kept' or is_best", "order_by": "score desc"}),
        ("saved often", {"where": "score > 1", "search": "ckpt"}), ("saved often", {"attempts": "all"}),
        ("resumed", {}), ("no row", {}), ("no row", {"limit": 3}),
    ],
    "rollouts": [
        *[("agents", ask) for ask in WINDOWS],
        ("agents", {"where": "not used and contains(item, 'pytest')", "order_by": "reward desc", "limit": 7}),
        ("agents", {"search": "DAY parse", "where": "used and gradient_step > 2", "order_by": "advantage desc"}),
        ("agents", {"where": "prompt like '%2 + 2%'", "order_by": "prompt, item"}),
        ("agents", {"where": "rollout_id in (select rollout_id from turns where error is not null)", "limit": 3}),
        ("agents", {"group": "nobody"}), ("agents", {"task": "nobody"}),
        ("agents", {"by_group": True, "solved": 0.05}),
        ("agents", {"by_group": True}), ("agents", {"by_group": True, "order_by": "reward desc, prompt", "limit": 3}),
        ("agents", {"by_group": True, "where": "not used", "offset": 1}),
        ("agents", {"by_group": True, "solved": "item like '%day%'"}),
        ("agents", {"by_group": True, "solved": "rewrad > 1"}), ("grpo", {}), ("no row", {"by_group": True}),
        ("resumed", {"attempts": "all"}),
    ],
    "prompts": [
        *[("agents", ask) for ask in WINDOWS],
        ("agents", {"only": "sometimes", "solved": 0.05, "x": "policy_version", "stretches": 3}),
        ("agents", {"only": "sometimes", "solved": 0.05}), ("agents", {"only": "never"}),
        ("agents", {"solved": "reward >= 1", "order_by": "recent_rate desc, prompt"}),
        ("agents", {"x": "policy_version", "stretches": 3}), ("agents", {"search": "DATEPARSE"}),
        ("agents", {"mode": "eval"}), ("agents", {"where": "groups > 3 and best > 0.5"}), ("no row", {}),
        ("agents", {"solved": "rewrad > 1"}), ("agents", {"solved": "reward >"}),
    ],
    "stages": [
        ("grpo", {}), ("grpo", {"start": 300.0, "stop": 900.0}), ("grpo", {"x": "relative", "start": 0.5}),
        ("grpo", {"x": "nothing", "start": 1.0}), ("grpo", {"attempts": "all"}), ("no row", {}),
        ("grpo", {"stretches": 4}), ("grpo", {"stretches": 3, "x": "time", "start": 0.0}),
        ("grpo", {"stretches": -1}), ("grpo", {"start": 5.0, "stop": 4.0}), ("no row", {"stretches": 2}),
        ("grpo", {"x": "train/reward"}),
    ],
    "log": [
        ("grpo", {}), ("grpo", {"name": "console"}), ("grpo", {"name": "nobody's"}), ("grpo", {"search": "KL reward"}),
        ("grpo", {"lines": 3}), ("grpo", {"lines": 0}), ("grpo", {"lines": -1}), ("grpo", {"near": 0.0, "lines": 2}),
        ("no row", {}),
    ],
    "novelty": [
        ("grpo", {}), ("grpo", {"points": 5}), ("grpo", {"points": 4, "x": "relative"}), ("grpo", {"points": 1}),
        ("grpo", {"points": 7, "x": "reward"}), ("grpo", {"points": 3, "x": "nothing"}), ("grpo", {"points": 0}),
        ("no row", {}), ("no row", {"x": "nothing"}),
    ],
    "unused": [
        ("grpo", {}), ("grpo", {"at": 1200}), ("grpo", {"at": -5.0, "x": "batch"}), ("grpo", {"at": 9, "x": "nothing"}),
        ("no row", {}), ("agents", {}),
    ],
    "rollout_curves": [
        ("agents", {"x": "policy_version", "solved": 0.05}), ("agents", {"mode": "eval"}),
        ("agents", {}), ("agents", {"x": "policy_version"}), ("agents", {"solved": 0.05}),
        ("agents", {"solved": "reward >= 1"}), ("agents", {"solved": "rewrad > 1"}), ("no row", {}),
    ],
    "rollout_answer": [
        *[("agents", {"question": question}) for question in RolloutQueries.QUESTIONS],
        ("agents", {"question": "tools", "limit": 1}), ("agents", {"question": "tool"}),
        ("no row", {"question": "fates"}),
        ("agents", {"question": "history", "rollout_id": "nobody"}), ("agents", {"question": "fates", "limit": -1}),
        ("agents", {"question": "prompts", "solved": 0.05}),
        ("agents", {"question": "history", "solved": "rewrad > 1"}),
    ],
}  # fmt: skip


def of_cause(door: str, answer: Any) -> Any:
    """What every door tells of the surroundings of a point."""
    if door == "python":
        answer = {"sentences": answer.sentences(), **answer.as_data()}
    if door == "mcp":
        unusual = [{name: row[name] for name in OF_UNUSUAL} for row in answer["rows"] if "unusual" in row]
        rows = [row["sentence"] for row in answer["rows"] if "sentence" in row]
        logged = [row["log"] for row in answer["rows"] if "log" in row]
        answer = {**answer, "sentences": rows, "unusual": unusual, "log": logged}
    if door == "http":
        of_tables = {name: answer[name]["total_in_window"] for name in ("episodes", "samples")}
        answer = {
            **answer,
            "in_window": of_tables,
            "log": [line["text"] for line in answer["log"]],
            "checkpoint_before": answer["checkpoint"]["before"],
        }
    before = answer["checkpoint_before"]
    told = {name: answer[name] for name in OF_POINT} | {
        "unusual": [[each[name] for name in OF_UNUSUAL] for each in answer["unusual"]],
        "in_window": {name: answer["in_window"][name] for name in ("episodes", "samples")},
        "before": None if before is None else (before["file"], before["x"], before["score"]),
    }
    return plain(told)


def of_rows(door: str, answer: Any) -> Any:
    """The cells of each row, in order. The page cuts long texts, and shows videos by their address."""
    if door == "python":
        rows = answer.select([name for name in answer.column_names if name not in APART]).to_pylist()
    else:
        rows = answer if door == "cli" else answer["media"] if "media" in answer else answer["rows"]
        rows = [row.get("cells", row) for row in rows]
    return plain([{name: short(cell) for name, cell in row.items() if name not in APART} for row in rows])


def of_rollouts(door: str, answer: Any) -> Any:
    """The same; what a group is stands apart on the page, in the columns of Python."""
    if door == "http":
        rows = []
        for row in answer["rows"]:
            group = row["group"] or {}
            fates = [{"fate": fate, "n": n} for fate, n in group.get("fates", {}).items()]
            of_group = {f"group_{name}": cell for name, cell in {**group, "fates": fates}.items() if group}
            rows.append({"rollout_id": row["id"], **row["cells"], **of_group})
        answer = {"rows": rows}
    return of_rows(door, answer)


def of_answer(door: str, answer: Any) -> Any:
    """The cells of each row; each door has its own form of the times in what was lost."""
    rows = of_rows(door, answer)
    return [{n: cell for n, cell in row.items() if n not in ("first", "last") or "status" not in row} for row in rows]


def of_stages(door: str, answer: Any) -> Any:
    """The stages, and the own time of each by stretch; the page calls their seconds `total`, with no longest call."""
    rows = (
        answer.to_pylist()
        if door == "python"
        else answer
        if door == "cli"
        else answer.get("stages", answer.get("rows"))
    )
    names = ("name", "calls", "own", "share", "median", "p99")
    parts = {row["name"]: [part["own"] for part in row.get("strip", ())] for row in rows}
    if door == "http":  # it has a 0 where a stage did not end
        parts = {name: [cell for cell in cells if cell] for name, cells in answer["over"]["seconds"].items()}
    return plain(
        [
            {
                **{name: row[name] for name in names},
                "seconds": row.get("total", row.get("seconds")),
                "over": [cell for cell in parts.get(row["name"], ()) if cell],
            }
            for row in rows
        ]
    )


def of_novelty(door: str, answer: Any) -> Any:
    """How many there are in each stretch, and where that is; the page calls every axis x."""
    if door == "http":
        return [[row["x"], row["rows"], row["new"], row["repeated"]] for row in answer["points"]]
    rows = answer.to_pylist() if door == "python" else answer if door == "cli" else answer["rows"]
    return [[*row.values()] for row in rows]


def of_unused(door: str, answer: Any) -> Any:
    """Each reason and its groups, at which place."""
    if door == "http":
        rows = [{"at": answer["at"], **row} for row in answer["reasons"]]
    else:
        rows = answer.to_pylist() if door == "python" else answer if door == "cli" else answer["rows"]
    return [sorted(map(str, row.values())) for row in rows]


def of_log(door: str, answer: Any) -> Any:
    """The time and the text of each line."""
    if door in ("python", "http"):
        lines = answer if door == "python" else [LogLine(**line) for line in answer["lines"]]
        return [(line.time, line.bare()) for line in lines]
    return [(row["time"], row["text"]) for row in (answer if door == "cli" else answer["rows"])]


def of_prompts(door: str, answer: Any) -> Any:
    """The numbers of each prompt; the page has the last message of a user, and an attempt for each stretch."""
    if door == "http":
        answer = [{**row, "task_id": row["id"], "rollout_id": row["example"]} for row in answer["rows"]]
        return plain([{name: row.get(name) for name in OF_PROMPT} for row in answer])
    return [{name: row.get(name) for name in OF_PROMPT} for row in of_rows(door, answer)]


def short(cell: Any) -> Any:
    cell = cell["text"] if isinstance(cell, dict) and set(cell) == {"text", "length"} else cell
    return cell[:300] if isinstance(cell, str) else cell


def of_shown(names: tuple[str, ...]) -> Callable[[str, Any], Any]:
    """The same of some columns."""
    return lambda door, answer: [{name: row.get(name) for name in names} for row in of_rows(door, answer)]


APART = {"time", "scope", "at", "attempt", "writer", "lane", "seq", "index", "id", "x", "outcome", "video", "traces",
         "first_time", "fate_time"}  # fmt: skip
"""How a row is told apart, and what a door shows besides."""
OF_POINT = ("sentences", "x", "at", "time", "clocks", "attempt", "window", "value", "looked_at", "timings", "log")
OF_UNUSUAL = ("key", "value", "median", "low", "high", "times", "at")
OF_PROMPT = ("task_id", "rollouts", "groups", "solved", "rate", "low", "high", "recent_rollouts", "recent_rate",
             "recent_low", "first", "last", "best", "rollout_id")  # fmt: skip
FACES: dict[str, Callable[[str, Any], Any]] = {
    "cause": of_cause, "samples": of_rows, "episodes": of_rows, "rows": of_rows, "text": of_shown(("key", "text")),
    "media": of_shown(("key", "kind", "path")), "rollouts": of_rollouts, "prompts": of_prompts,
    "rollout_answer": of_answer, "rollout_curves": of_rows, "stages": of_stages, "log": of_log,
    "checkpoints": of_rows, "novelty": of_novelty, "unused": of_unused,
}  # fmt: skip


def number(value: Any) -> Any:
    """A decimal of SQL as JSON has it; large integers as their digits."""
    value = value if not isinstance(value, Decimal) else int(value) if value == int(value) else float(value)
    return str(value) if isinstance(value, int) and abs(value) >= 2**63 else value


def plain(value: Any) -> Any:
    """The same for numbers that JSON has no words for."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def gives_something_new(case: tuple[str, str, dict[str, Any]]) -> bool:
    """A run or an option that no case before it gives, or a name that nothing has; of windows, those of `ASKED_OF`."""
    name, run, ask = case
    if (window := {option: value for option, value in ask.items() if option != "table"}) in WINDOWS:
        return window in ASKED_OF.get(name, WINDOWS[:2])
    before = ASKED[name][: ASKED[name].index((run, ask))]
    given = {option for _run, one in before for option in one}
    is_new = run not in {one for one, _ask in before} or bool(set(ask) - given)
    return is_new or "nothing" in str(ask) or "nobody" in str(ask)


@pytest.mark.parametrize(
    ("name", "run", "ask"),
    some_of(
        [(name, run, ask) for name, asks in ASKED.items() for run, ask in asks],
        gives_something_new,
    ),
    ids=lambda value: str(value)[:70],
)
def test_every_door_gives_the_same_numbers_words_and_errors(
    name: str, run: str, ask: dict[str, Any], doors: Doors
) -> None:
    told: dict[str, Any] = {}
    for amount, most in (("limit", 1_000), ("points", 60)):
        if amount in {option.name for option in options(question_of(name))}:
            ask = {amount: most, **ask}
    in_place = options(RolloutAnswer) if name in BY_ANSWER else options(Rows) if name in BY_ROWS else []
    own = {"everything"} if name == "checkpoints" else set()
    has_none = name in (*BY_ROWS, *BY_ANSWER) and not set(ask) <= own | {option.name for option in in_place}
    has_none |= name == "checkpoints" and "where" in ask and not ask.get("everything")
    others = [door for door, isnt in (("cli", False), ("http", name in IN_PARTS), ("mcp", has_none)) if not isnt]
    if name == "rollout_answer" and ask.get("question") == "history":
        one = rollbook.open(doors.root).one(doors.ids[run]).rollouts(limit=1)["rollout_id"][0].as_py()
        ask = {"rollout_id": one, **ask}
    for door in ("python", *others):
        try:
            told[door] = FACES[name](door, getattr(doors, door)(name, run, ask))
        except RollbookError as err:
            told[door] = {"error": str(err).replace("\n", " ")}
    for door in others:
        assert told[door] == told["python"], door


@pytest.mark.parametrize(
    "run", some_of(["grpo", "diverged", "resumed", "no row", "many keys", "crashed", "grün's", "two clocks"], 5)
)
def test_what_is_in_a_run_is_the_same_by_every_door(run: str, doors: Doors) -> None:
    expected = rollbook.open(doors.root).one(doors.ids[run]).overview()
    shown = json.loads(CliRunner().invoke(app, ["show", doors.ids[run], "--dir", str(doors.root), "--json"]).stdout)
    assert plain(shown) == plain({**expected.as_data(), "problems": [str(each) for each in expected.problems]})
    paged = doors.client.get(f"/api/runs/{doors.keys[run]}").json()
    for name in ("why", "summary", "tables", "config", "drops", "seed", "status"):
        assert plain(paged[name]) == plain(getattr(expected, name)), name
    assert [*filter(None, [paged["why"]]), *paged["remarks"]] == expected.sentences()
    told = json.loads(doors.tools.probe(of=doors.ids[run]))
    assert told["remarks"] == expected.sentences()
    assert told["tables"] == expected.tables
    keys = {row["key"]: {"value": row["last"], **row["at"]} for row in told["rows"] if "key" in row}
    assert plain(keys) == plain(expected.keys)
    summary = {row["summary"]: row["value"] for row in told["rows"] if "summary" in row}
    assert plain(summary) == plain(expected.summary)


@pytest.mark.parametrize(
    ("run", "query"),
    [
        ("grpo", "select count(*) as n, max(update_time) from (select epoch_us(time) as update_time from metrics)"),
        ("agents", "select rollout_id, used, reason, staleness from rollouts_now order by rollout_id"),
        ("agents", "select kind, count(*) as n, count(prompt) as prompts from completions group by 1"),
        ("own table", "select * exclude (time, writer) from votes order by n"),
        ("agents", "select sum(turns) as turns, avg(reward) as mean, sum(turns) / 3 as third from rollouts"),
        (
            "agents",
            "select 1.5::decimal(10, 2) as half, 12345678901234567890::hugeint as large, 2::decimal(9, 0) as two",
        ),
        ("grpo", "select * from nothing_at_all"),
        ("grpo", "select * from metric"),
        ("own table", "select * from vote"),
        ("grpo", "select train/reward from metrics"),
        ("grpo", "select"),
    ],
)
def test_sql_is_answered_alike_by_every_door(run: str, query: str, doors: Doors) -> None:
    def python() -> Any:
        relation = rollbook.open(doors.root).one(doors.ids[run]).sql(query)
        return [dict(zip(relation.columns, map(number, row), strict=True)) for row in relation.fetchall()]

    def cli() -> Any:
        done = CliRunner().invoke(app, ["sql", doors.ids[run], query, "--dir", str(doors.root), "--json"])
        if done.exit_code:
            raise RollbookError(done.stderr.strip().removeprefix("Error: "))
        return json.loads(done.stdout)

    def http() -> Any:
        answer = doors.client.post("/api/sql", json={"runs": [doors.keys[run]], "query": query}).json()
        if "error" in answer:
            raise RollbookError(" ".join(filter(None, [answer["error"]["message"], answer["error"]["hint"]])))
        names = [column["name"] for column in answer["columns"]]
        return [dict(zip(names, cells, strict=True)) for cells in answer.get("rows", [])]

    def mcp() -> Any:
        return json.loads(doors.tools.sql(run=doors.ids[run], query=query))["rows"]

    told = []
    for door in (python, cli, http, mcp):
        try:
            told.append(plain(door()))
        except RollbookError as err:
            told.append(" ".join(str(err).split()))
    for one in told:
        assert one == told[0]


def test_the_page_shows_the_answers_about_rollouts(doors: Doors) -> None:
    book, place = rollbook.open(doors.root).one(doors.ids["agents"]), f"/api/runs/{doors.keys['agents']}"
    fates = doors.client.get(f"{place}/fates").json()
    shown = {"staleness": "stale", "gaps": "gaps", "tokens": "tokens", "tools": "tools", "words": "words"}
    for question, name in shown.items():
        rows = book.rollout_answer(question).to_pylist()
        paged = [[*map(short, row.values())] for row in fates[name]]
        assert [[*map(short, row.values())] for row in plain(rows)[: len(paged)]] == paged
        assert bool(paged) == bool(rows), question
    counted = {row["fate"]: row["rollouts"] for row in book.rollout_answer("fates").to_pylist()}
    assert {layer["reason"]: layer["total"] for layer in fates["layers"]} == counted
    one = book.rollouts(limit=1)["rollout_id"][0].as_py()
    names = {"version": "version", "n": "rollouts", "mean": "reward", "solved": "solved", "low": "low", "used": "used"}
    history = book.rollout_answer("history", rollout_id=one).to_pylist()
    paged = doors.client.get(f"{place}/rollouts/{one}").json()["history"]
    assert [{theirs: row[ours] for theirs, ours in names.items()} for row in history] == [
        {name: row[name] for name in names} for row in paged
    ]


@pytest.mark.parametrize("name", ["samples", "episodes", "text", "media", "checkpoints", "rollouts", "rows"])
def test_the_columns_of_a_window_do_not_depend_on_what_is_asked_of_it(name: str, doors: Doors) -> None:
    run = "agents" if name == "rollouts" else "grpo"
    of = [{"table": "episodes"}, {"table": "checkpoints"}, {"table": "alerts"}] if name == "rows" else [{}]
    for table in of:
        whole = doors.python(name, run, table).column_names
        for window in ({"limit": 1000}, {"where": "true"}, {"order_by": "time"}, {"offset": 1}):
            assert doors.python(name, run, table | window).column_names == whole, (table, window)


def test_the_timeline_and_the_scatter_of_the_page_draw_the_rows_that_every_door_lists(doors: Doors) -> None:
    book, place = rollbook.open(doors.root).one(doors.ids["grpo"]), f"/api/runs/{doors.keys['grpo']}"
    asked = {"pixels": 10_000, "since": 0.0}
    whole = doors.client.get(f"{place}/timeline", params=asked).json()
    asked = {"pixels": 10_000, "since": whole["first"], "until": whole["last"]}
    drawn = doors.client.get(f"{place}/timeline", params=asked).json()
    rows = book.rows("timings").to_pylist()
    spans = [dict(zip(Span.__struct_fields__, span, strict=True)) for span in drawn["spans"]]
    assert sum(span["merged"] for span in spans) == len(rows)
    assert {drawn["names"][span["name"]] for span in spans} == {row["name"] for row in rows}
    response = doors.client.get(f"{place}/scatter", params={"x": "env_step", "y": "return"})
    ((_, (arrays,)),) = [(header, [*of.values()]) for header, of in unpack(response.content)]
    episodes = book.episodes(order_by="time, writer, lane, seq").select(["env_step", "return"]).to_pylist()
    assert [*zip(arrays["x"].tolist(), arrays["y"].tolist(), strict=True)] == [
        (row["env_step"], pytest.approx(row["return"], rel=1e-6)) for row in episodes
    ]


def test_every_question_is_asked() -> None:
    assert set(ASKED) == set(FACES) == {name_of(question) for question in ONE_RUN}
