"""Every command takes its runs by the same words: a folder, a project, a name, an id, `last`."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from click import Context
from click.testing import CliRunner, Result

import rollbook
from cases import some_of
from rollbook.cli.app import app
from rollbook.errors import RunNotFound


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """p/old has a bit of everything, p/new rows alone, and q/bare, the newest of all, has nothing."""
    root = tmp_path_factory.mktemp("words") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ROLLBOOK_RUN_ID", raising=False)
        with rollbook.init("p", "old", dir=root, sinks=[], keeper="import", run_id="aaaaaaaa", config={"lr": 1}) as run:
            for step in range(3):
                with run.timer("collect"):
                    run.log({"train/return": float(step)}, env_step=step)
            run.log_episode(return_=3.0, length=3, env_step=2)
            run.log_samples(["a", "b"], reward=[0.2, 0.9])
            run.save_checkpoint({"w": 1}, score=1.0)
        with rollbook.init("p", "new", dir=root, sinks=[], keeper="import", run_id="bbbbbbbb", config={"lr": 2}) as run:
            run.log({"loss": 1.0}, env_step=1)
        rollbook.init("q", "bare", dir=root, sinks=[], keeper="import", run_id="cccccccc").finish()
    return root


@pytest.fixture
def here(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Beside the folder of all runs."""
    monkeypatch.chdir(root.parent)
    monkeypatch.delenv("ROLLBOOK_DIR", raising=False)
    return root.parent


def call(*words: str) -> Result:
    done = CliRunner().invoke(app, list(words))
    assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exception)
    return done


OLD, NEW, BARE = "aaaaaaaa", "bbbbbbbb", "cccccccc"
WAYS: dict[str, list[str]] = {  # what is meant, the newest first
    "last": [BARE, NEW, OLD],
    "runs": [BARE, NEW, OLD],
    "./runs": [BARE, NEW, OLD],
    ".": [BARE, NEW, OLD],
    "p": [NEW, OLD],
    "runs/p": [NEW, OLD],
    "runs/p/": [NEW, OLD],
    "p/old": [OLD],
    "old": [OLD],
    f"old-{OLD}": [OLD],
    f"p/old-{OLD}": [OLD],
    OLD: [OLD],
    f"runs/p/old-{OLD}": [OLD],
    f"runs/p/old-{OLD}/": [OLD],
    f"{{}}/runs/p/old-{OLD}": [OLD],
    "q": [BARE],
    "bare": [BARE],
}

ONE: dict[str, tuple[list[str], tuple[str, ...]]] = {  # command -> its other words, the runs that have what it shows
    "show": (["--json"], (OLD, NEW, BARE)),
    "cause": (["--at", "1", "--json"], (OLD, NEW, BARE)),
    "tail": (["--json"], (OLD, NEW)),
    "logs": (["--list", "--json"], ()),
    "watch": (["--once"], (OLD, NEW, BARE)),
    "wait": (["--until", 'status != "running"', "--json"], (OLD, NEW, BARE)),
    "episodes": (["--json"], (OLD,)),
    "samples": (["--json"], (OLD,)),
    "text": (["--json"], ()),
    "media": (["--json"], ()),
    "rows": (["alerts", "--json"], (OLD, NEW, BARE)),
    "rollouts": (["--json"], ()),
    "checkpoints": (["--json"], (OLD,)),
    "timings": (["--json"], (OLD,)),
    "novelty": (["--json"], (OLD,)),
    "unused": (["--json"], (OLD,)),
    "export": (["--table", "episodes", "--to", "jsonl"], (OLD,)),
    "sql": (["select 1 as one", "--json"], (OLD, NEW, BARE)),
    "seal": ([], (OLD, NEW, BARE)),
    "trim": (["--keep", "1GB"], (OLD, NEW, BARE)),
    "forward": (["--to", "memory"], (OLD, NEW, BARE)),
    "play": (["--no-open"], ()),
    "push": ([], ()),
    "sync": ([], ()),
    "join": ([], ()),
}
SEVERAL: dict[str, list[str]] = {
    "disk": ["--json"],
    "rm": ["--json"],
    "ls": ["--json"],
    "plot": ["--key", "train/return", "--text"],
    "compare": ["--metric", "train/return", "--by", "name", "--json"],
    "diff": ["--json"],
    "series": ["--key", "train/return", "--json"],
    "curves": ["--key", "train/return", "--json"],
    "sweep": ["--json"],
    "findings": ["--json"],
    "plans": ["--json"],
    "seeds": ["--metric", "train/return", "--by", "name", "--json"],
    "alerts": ["--json"],
    "check": ["--json"],
    "verify": ["--json"],
    "repair": ["--json"],
    "report": ["-o", "report.html"],
    "ui": [],
}
FEW = ("last", "runs", "p", OLD)
NONE = {
    *("board", "shared-prompts", "mcp", "demo", "import", "pull", "catalogue", "views", "run", "scores", "shapes"),
    "label",
}
"""They take two runs, or none: a place, a file, a program, or nothing."""


@pytest.mark.parametrize("way", some_of(WAYS, list(WAYS)[::3].count))
def test_a_command_about_one_run_takes_the_newest_that_has_something_to_show(
    way: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollbook.cli import find

    word, meant = way.format(here), WAYS[way]
    taken: list[str] = []
    plain = find._newest

    def newest(*arguments: Any) -> Any:
        book = plain(*arguments)
        taken.append(book.id)
        return book

    monkeypatch.setattr(find, "_newest", newest)
    for command, (more, having) in ONE.items():
        if command in ("push", "sync", "join", "play", "forward", "seal", "trim"):
            continue  # they find it by the same function as those above, and do more than look
        taken.clear()
        done = call(command, word, *more)
        expected = next((run for run in meant if run in having), meant[0])
        assert done.exit_code == 0, (command, done.output)
        if os.sep in word.rstrip("/") and len(meant) == 1:
            assert find.find_book(word, "runs").id == expected
        else:
            assert taken == [expected], command
            assert (f"{expected}, the newest run that has" in done.stderr) == (expected != meant[0]), command
            names_it = word != "last" and len(meant) > 1 and expected == meant[0]
            assert (f"{expected}, the newest\n" in done.stderr) == names_it, command
        assert find.find_folder(word, "runs").endswith(meant[0])


@pytest.mark.parametrize("way", some_of(WAYS, [*list(WAYS)[1::2], *FEW].count))
def test_a_command_about_several_runs_takes_all_that_are_meant(way: str, here: Path, tmp_path: Path) -> None:
    from rollbook.cli.ui import _local_folders
    from rollbook.server.shared.catalogue import Catalogue

    word, meant = way.format(here), WAYS[way][:1] if way == "last" else WAYS[way]
    assert [row["id"] for row in json.loads(call("ls", word, "--json").stdout)] == meant
    folders = _local_folders(word, "runs")
    catalogue = Catalogue(folders)
    catalogue.refresh()
    assert {str(row.about["id"]) for row in catalogue.snapshot(60).rows.values()} == set(meant)
    drawn = call("plot", word, "--key", "train/return")
    assert drawn.exit_code == (0 if OLD in meant or way == "last" else 1), drawn.output
    if way in FEW:  # one word for each meaning: a report costs the most
        assert call("report", word, "-o", str(tmp_path / "report.html")).exit_code == 0
    if len(meant) > 1:
        assert call("diff", word, "--json").exit_code == 0
        assert {run[-8:] for run in json.loads(call("verify", word, "--json").stdout)} == set(meant)


def test_the_page_of_a_folder_shows_runs_that_begin_later_however_the_folder_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollbook.cli.ui import _local_folders

    monkeypatch.chdir(tmp_path)
    for project in ("a", "b"):
        rollbook.init(project, "ppo", dir=tmp_path / "elsewhere", sinks=[], keeper="import").finish()
    for word in ("elsewhere", "./elsewhere", str(tmp_path / "elsewhere")):
        assert _local_folders(word, "runs") == [str(tmp_path / "elsewhere")], word


def test_verify_and_repair_of_many_runs_pass_none_over(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest run is whole; one beside it is damaged, and one has lost its run.json."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(root, tmp_path / "runs")
    damaged, lost = tmp_path / "runs" / "p" / f"old-{OLD}", tmp_path / "runs" / "q" / f"bare-{BARE}"
    (part, *_) = damaged.glob("data/timings/*.parquet")
    part.write_bytes(part.read_bytes()[:-20])
    (lost / "run.json").unlink()
    for words in (["runs"], ["p", "q"], ["runs/p", "runs/q"], ["."]):
        answer = call("verify", *words, "--json")
        assert answer.exit_code == 1
        wrong = {run for run, problems in json.loads(answer.stdout).items() if problems}
        assert {run[-8:] for run in wrong} == {OLD, BARE} or wrong == {f"runs/p/old-{OLD}", words[-1]}, words
    done = call("repair", "runs")
    assert (done.exit_code, f"runs/p/old-{OLD}: " in done.stdout) == (0, True)
    again = call("verify", "runs", "--json")
    assert {run[-8:] for run, problems in json.loads(again.stdout).items() if problems} == {OLD}, (
        "what is lost stays said"
    )


def test_verify_vouches_for_no_run_of_another_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is damaged in their files, only opening them tells."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / "old" / name).mkdir(parents=True)
        (tmp_path / "old" / name / "progress.csv").write_bytes(b"time/total_timesteps,train/loss\n2048,\xff\n")
    answer = call("verify", "old", "--json")
    assert json.loads(answer.stdout) == {}
    assert "passed over: 2 runs of other tools" in answer.stderr


def test_every_command_is_one_of_these() -> None:
    assert {*ONE, *SEVERAL, *NONE} == set(app.list_commands(Context(app)))


def test_commands_that_only_read_take_the_last_run_if_none_is_named(here: Path) -> None:
    for command in ("show", "tail", "episodes", "samples", "rollouts", "checkpoints", "timings", "export", "verify"):
        assert call(command).exit_code == 0, command
    assert json.loads(call("sql", "select count(*) as n from metrics", "--json").stdout)[0]["n"] == 0
    for command in ("seal", "repair", "forward", "push", "sync"):
        assert call(command).exit_code == 2, command


NAMES = {"seeds": "metric", "curves": "key"}


def test_compare_without_a_metric_is_by_the_score_that_the_runs_have_and_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for keys in (
        ("update/loss", "train/return", "test/return"),
        ("update/loss", "update/entropy"),
        ("loss", "rollout/ep_rew_mean"),
    ):
        for algo in ("ppo", "sac"):
            for seed in range(4 if "test/return" in keys else 2):
                with rollbook.init(
                    keys[-1].replace("/", "-"), algo, seed=seed, config={"algo": algo}, sinks=[], keeper="import"
                ) as run:
                    run.log({key: float(seed + (algo == "sac") * 9) for key in keys}, env_step=1)
    unnamed, named = call("compare", "test-return"), call("compare", "test-return", "--metric", "test/return")
    assert (unnamed.exit_code, named.exit_code) == (0, 0)
    said = "By test/return, the score that these runs have. "
    assert said in unnamed.stdout.replace("\n", " ")
    assert said not in named.stdout.replace("\n", " ")
    for question in ("seeds", "curves"):
        assert said.strip() in call(question, "test-return").output.replace("\n", " "), question
        assert said.strip() not in call(question, "test-return", f"--{NAMES[question]}", "test/return").output, question
    assert said.strip() in call("sweep", "test-return").stdout.replace("\n", " ")
    assert said.strip() not in call("sweep", "test-return", "--metric", "test/return").stdout.replace("\n", " ")
    assert call("report", "test-return", "-o", "unnamed.html").exit_code == 0
    assert call("report", "test-return", "--metric", "test/return", "-o", "named.html").exit_code == 0
    assert [said.strip() in Path(f"{name}.html").read_text() for name in ("unnamed", "named")] == [True, False]
    assert call("plot", "test-return").stdout.startswith("test/return by what differs")
    assert "By rollout/ep_rew_mean," in call("compare", "rollout-ep_rew_mean").stdout, "whatever a tool calls it"
    assert call("plot", "update-entropy").exit_code == 1
    without = call("compare", "update-entropy")
    assert (without.exit_code, without.stdout) == (1, "")
    assert "no key of these runs is called like a score" in without.stderr
    assert "update/loss" in without.stderr


def test_a_word_of_no_run_is_an_error_that_names_the_nearest(here: Path) -> None:
    for command, (more, _having) in {**ONE, **{name: (more, ()) for name, more in SEVERAL.items()}}.items():
        words = [command, "runs/p", "p/odl"] if command == "join" else [command, "p/odl", *more]
        done = call(*words)
        assert done.exit_code == 1, command
        assert "Did you mean 'p/old'?" in done.stderr, command


def test_a_run_that_its_owner_called_last_is_that_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    for name in ("last", "newer"):
        rollbook.init("p", name, dir=tmp_path, sinks=[], keeper="import").finish()
    from rollbook.cli.find import find_book, find_runs

    assert find_book("last", str(tmp_path)).name == "last"
    assert [book.name for book in find_runs("last", str(tmp_path))] == ["last"]


def test_a_run_whose_run_json_is_gone_is_found_by_every_word_for_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollbook.cli.find import find_folder

    monkeypatch.chdir(tmp_path)
    shutil.copytree(root, tmp_path / "runs")
    (tmp_path / "runs" / "p" / f"old-{OLD}" / "run.json").unlink()
    for word in (f"runs/p/old-{OLD}", f"old-{OLD}", OLD, "old", "p/old"):
        assert Path(find_folder(word, "runs")).name == f"old-{OLD}", word
        assert "no run.json" in call("verify", word).stdout
    with pytest.raises(RunNotFound):
        find_folder("older", "runs")


@pytest.mark.parametrize("command", ["ls", "plot", "compare", "diff", "report", "show", "tail", "ui", "timings"])
def test_where_another_tool_left_results_a_command_names_what_to_do_and_it_works(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "my logs"
    there.mkdir()
    (there / "results of mine.csv").write_bytes(b"time/total_timesteps,train/loss\n2048,0.5\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ROLLBOOK_DIR", "runs")
    module = importlib.import_module("rollbook.cli.ui")
    monkeypatch.setattr(module, "page_is_ready", lambda: False)

    class Served:
        settings = None
        address = "http://there/"

        def run(self) -> None:
            return None

    monkeypatch.setattr(module, "_server", lambda settings, any_port: Served())
    monkeypatch.chdir(there)
    done = call(command)
    assert "(csv)" in done.stderr, done.output
    assert done.stdout == ""
    advised = re.findall(r"rollbook ((?:ls|import) \S+)", done.stderr)
    assert advised == ["ls .", "import ."]
    for words in advised:
        followed = call(*words.split())
        assert (followed.exit_code, "results of mine" in followed.stdout) == (0, True), followed.output
    assert "results of mine" in call("ls").stdout


def test_a_table_whose_axis_would_be_a_guess_is_named_with_the_command_that_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old logs").mkdir()
    (tmp_path / "old logs" / "mine.csv").write_text("when,loss\n1,0.5\n2,0.25\n")
    for words in (["ls", "old logs/"], ["import", "old logs"]):
        refused = call(*words)
        (advice,) = set(re.findall(r"rollbook (label .*? x=)COLUMN", refused.stderr))
        assert "when, loss" in refused.stderr
    assert call(*shlex.split(advice + "when")).exit_code == 0
    assert (tmp_path / "old logs" / "rollbook.labels").read_text() == "mine.csv x=when\n"
    assert "mine" in call("ls", "old logs/").stdout
    assert "2 rows" in call("import", "old logs").stderr
    assert (tmp_path / "old logs" / "mine.csv").read_text() == "when,loss\n1,0.5\n2,0.25\n"


@pytest.mark.parametrize("columns", some_of(["30", "80"], 1))
def test_what_a_command_advises_to_add_is_an_option_that_it_has(
    columns: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for command, more in {**{name: more for name, (more, _) in ONE.items()}, **SEVERAL}.items():
        if command in ("push", "sync", "join", "play", "forward", "ui", "watch", "repair", "seal", "trim"):
            continue  # they print no table
        parser = app.get_command(Context(app), command)
        assert parser is not None
        options = {word for parameter in parser.params for word in parameter.opts} | {"--help"}
        words = "p" if command in SEVERAL else "p/old"
        done = call(command, words, *(word for word in more if word not in ("--json", "--csv")))
        advised = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", done.output.partition("rollbook ")[0]))
        assert advised <= options, (command, advised - options)


def test_what_people_look_for_as_an_option_is_named_as_a_command(here: Path) -> None:
    for option in ("--timings", "--episodes", "--checkpoints"):
        done = call("show", "last", option)
        assert done.exit_code == 2
        assert f"rollbook {option[2:]}" in done.stderr


def test_an_option_for_metrics_is_answered_with_the_one_that_the_command_has() -> None:
    words = {"--metric", "--metrics", "--key", "--keys"}
    for command in app.list_commands(Context(app)):
        parser = app.get_command(Context(app), command)
        assert parser is not None
        own = {word for parameter in parser.params for word in parameter.opts} & words
        for other in sorted(words - own) if own else ():
            assert f"Did you mean '{min(own)}'" in call(command, other, "train/loss").stderr, (command, other)


def test_runs_of_several_names_are_not_drawn_as_seeds_of_one(tmp_path: Path) -> None:
    for project, name in (("p", "ppo"), ("p", "dqn"), ("q", "dqn")):
        with rollbook.init(project, name, dir=tmp_path, sinks=[], keeper="import") as run:
            run.log({"train/return": 1.0}, env_step=1)
    drawn = {
        runs: call("plot", runs, "--dir", str(tmp_path), "--key", "train/return").stdout for runs in ("p", "p/dqn")
    }
    assert "ppo" in drawn["p"]
    assert "dqn" in drawn["p"]
    assert "by name" not in drawn["p/dqn"]
    several = call("plot", "--dir", str(tmp_path), "--key", "train/return", "--where", "name == 'dqn'").stdout
    assert "by what differs" in several
    assert "p/dqn" in several
    assert "q/dqn" in several
    assert "2 groups, by what differs: name" in call("compare", "p", "--dir", str(tmp_path)).stdout


def test_what_is_missing_in_a_question_is_named_with_what_there_is(here: Path) -> None:
    done = call("plot", "p", "--key", "train/retrun")
    assert "train/return" in done.stderr
    assert "-o" not in done.stderr
    assert call("plot", "p", "--key", "train/return").exit_code == 0
    assert call("import").exit_code == 2
    assert "tensorboard" in call("import", "--formats").stdout
