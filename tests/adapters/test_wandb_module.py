"""`import rollbook.wandb as wandb`: programs that log to wandb record with rollbook."""

from __future__ import annotations

import ast
import os
import runpy
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rollbook.wandb as wandb

import rollbook
from hostile import HOSTS
from waiting import PATIENCE


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "runs"))
    yield tmp_path / "runs"
    wandb.teardown()


def book(root: Path, **which: Any) -> rollbook.Book:
    return rollbook.open(root).one(**which)


def test_what_a_program_sets_on_the_wandb_run_is_in_the_run(root: Path) -> None:
    run = wandb.init(
        entity="lab",
        project="study",
        name="ppo",
        group="g",
        job_type="train",
        tags=["a", "b"],
        notes="hello",
        config={"lr": 3e-4, "seed": 7},
    )
    assert wandb.run is run
    assert (run.project, run.name, run.group, run.job_type, run.tags, run.notes, run.entity) == (
        "study",
        "ppo",
        "g",
        "train",
        ("a", "b"),
        "hello",
        "lab",
    )
    assert wandb.config.lr == wandb.config["lr"] == 3e-4
    wandb.config.update({"late": 1})
    wandb.finish()
    assert wandb.run is None
    kept = book(root)
    assert (kept.project, kept.name, kept.group, kept.seed, kept.tags) == ("study", "ppo", "g", 7, ["a", "b"])
    assert kept.config == {"lr": 3e-4, "seed": 7, "late": 1}
    assert kept.status == "finished"


def test_rows_count_themselves_and_a_late_step_is_kept(root: Path) -> None:
    wandb.init(project="p")
    for n in range(4):
        wandb.log({"loss": n / 2, "global_step": 10 * n})
    wandb.log({"a": 1.0}, commit=False)
    wandb.log({"b": 2.0})
    wandb.log({"late": 5.0}, step=2)
    wandb.log({"far": 6.0}, step=100)
    wandb.log({"next": 7.0})
    wandb.finish()
    kept = book(root)

    def steps(key: str) -> list[int]:
        return list(kept.metrics([key], x="step")["step"].to_pylist())

    assert steps("loss") == [0, 1, 2, 3]
    assert kept.metrics(["loss"], x="env_step")["env_step"].to_pylist() == [0, 10, 20, 30]
    assert [steps(key) for key in ("a", "b", "late", "far", "next")] == [[4], [4], [2], [100], [100]]


def test_a_counter_of_any_kind_of_integer_is_a_clock_whatever_stands_beside_it(root: Path) -> None:
    wandb.init(project="p")
    for n, counter in enumerate((5, np.int64(6), np.int32(7), np.float32(8), True, float("nan"))):
        for loss in (0.5, np.float32(1), np.array(2.0)):  # the same keys again with values of another type
            wandb.log({"global_step": counter, "loss": loss}, step=n)
    wandb.finish()
    rows = [
        (row["step"], row["env_step"], row["loss"]) for row in book(root).metrics(["loss"], x="env_step").to_pylist()
    ]
    readings = (5, 6, 7, 8, 8, 8)  # neither True nor NaN counts anything: the clock stays
    assert rows == [(n, reading, loss) for n, reading in enumerate(readings) for loss in (0.5, 1.0, 2.0)]


@pytest.mark.filterwarnings("ignore::rollbook.errors.RollbookWarning")
def test_a_step_of_no_number_costs_no_row_and_reaches_no_training(root: Path) -> None:
    wandb.init()
    for odd in (host() for name, host in HOSTS.items() if name != "none"):
        wandb.log({"a": 1.0, "b": odd}, step=odd)
    wandb.finish()
    assert book(root).metrics(["a"])["a"].to_pylist() == [1.0] * (len(HOSTS) - 1)


def test_nested_values_are_joined_with_dots_and_every_kind_finds_its_place(root: Path, tmp_path: Path) -> None:
    wandb.init(project="p")
    picture = np.zeros((8, 6, 3), np.uint8)
    wandb.log(
        {
            "nested": {"x": {"y": 1}, "z": 2.5},
            "flag": True,
            "word": "text",
            "h": wandb.Histogram(np.arange(10.0)),
            "made": wandb.Histogram(np_histogram=np.histogram(np.arange(10.0), 5)),
            "img": wandb.Image(picture, caption="c"),
            "rows": wandb.Table(columns=["a", "b"], data=[[1, "x"], [2, "y"]]),
            "page": wandb.Html("<b>hi</b>"),
            "film": wandb.Video(np.zeros((4, 3, 16, 16), np.uint8), fps=4),
            "many": [wandb.Image(picture), wandb.Image(picture)],
        }
    )
    wandb.finish()
    kept = book(root)
    assert kept.metrics(["nested.x.y"])["nested.x.y"].to_pylist() == [1]
    assert kept.metrics(["nested.z"])["nested.z"].to_pylist() == [2.5]
    assert kept.table("histograms")["key"].to_pylist() == ["h", "made"]
    assert sorted(kept.table("media")["key"].to_pylist()) == ["film", "img", "many/0", "many/1"]
    assert kept.table("rows").select(["a", "b"]).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    texts = dict(zip(kept.table("text")["key"].to_pylist(), kept.table("text")["text"].to_pylist(), strict=True))
    assert (texts["word"], texts["page"], texts["img/caption"]) == ("text", "<b>hi</b>", "c")


def test_what_cannot_be_stored_is_counted_and_reported_and_nothing_else_is_lost(root: Path) -> None:
    run = wandb.init(project="p")
    with pytest.warns(rollbook.errors.RollbookWarning, match="Molecule"):  # type: ignore[attr-defined]
        wandb.log({"a": 1.0, "m": wandb.Molecule(object())})
    assert run.rollbook is not None
    assert run.rollbook.bill()["drops"] == {"wandb_not_kept": 1}
    wandb.finish()
    assert book(root).metrics(["a"]).num_rows == 1


def test_summaries_are_what_was_logged_last_what_was_written_and_what_define_metric_asked_for(root: Path) -> None:
    wandb.init(project="p")
    wandb.define_metric("eval/*", step_metric="eval/iter", summary="max,mean")
    wandb.define_metric("loss", summary="min")
    for n in (3.0, 9.0, 6.0):
        wandb.log({"eval/return": n, "loss": n})
    wandb.summary["note"] = "x"
    assert wandb.summary["eval/return"] == 6.0
    wandb.finish()
    assert book(root).info.summary == {"eval/return.max": 9.0, "eval/return.mean": 6.0, "loss.min": 3.0, "note": "x"}


def test_a_file_of_settings_is_read_and_a_missing_one_is_named(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("theirs.yaml").write_text("wandb_version: 1\nlr: {value: 0.1, desc: rate}\nnet: {value: {width: 8}}\n")
    Path("plain.yaml").write_text("lr: 0.2\nseed: 3\nnet: {value: 1, other: 2}\n")
    Path("bad.yaml").write_text("- 1\n")
    for name, held in (
        ("theirs.yaml", {"lr": 0.1, "net": {"width": 8}}),
        ("plain.yaml", {"lr": 0.2, "seed": 3, "net": {"value": 1, "other": 2}}),
    ):
        with wandb.init(project="p", name=name, config=name):
            pass
        assert book(root, name=name).config == held
    Path("theirs.yaml").rename("config-defaults.yaml")
    with wandb.init(project="p", config={"lr": 9}) as run:
        assert dict(run.config) == {"lr": 9, "net": {"width": 8}}
    for name, why in (("none.yaml", "doesn't exist"), ("bad.yaml", "has no settings")):
        with pytest.raises(wandb.sdk.lib.config_util.ConfigError, match=why):
            wandb.init(project="p", config=name)
    for odd in (3, [1], Path("plain.yaml")):
        with pytest.raises(TypeError, match="config must be a dict"):
            wandb.init(project="p", config=odd)


def test_a_summary_that_wandb_does_not_know_is_named_once_and_the_others_are_kept(root: Path) -> None:
    run = wandb.init(project="p")
    with pytest.warns(rollbook.errors.RollbookWarning, match="no summary 'median'"):  # type: ignore[attr-defined]
        run.define_metric("a", summary="median,MAX")
    for n in (1.0, 3.0, 2.0):
        run.log({"a": n})
    wandb.finish()
    assert book(root).info.summary == {"a.max": 3.0}


def test_a_disabled_run_takes_everything_and_keeps_nothing(root: Path) -> None:
    run = wandb.init(project="p", mode="disabled", config={"lr": 1})
    wandb.log({"a": 1.0, "h": wandb.Histogram([1.0])})
    wandb.alert("title")
    assert run.disabled
    assert wandb.config.lr == 1
    wandb.finish()
    assert not root.exists()


def test_a_second_init_gives_the_open_run_unless_reinit_says_otherwise(root: Path) -> None:
    first = wandb.init(project="p", name="one")
    assert wandb.init(project="p", name="two") is first
    second = wandb.init(project="p", name="two", reinit=True)
    assert second is not first
    third = wandb.init(project="p", name="three", reinit="create_new")
    assert wandb.run is second  # a run made beside others leaves wandb.run and wandb.log as they are
    wandb.log({"whose": 2.0})
    third.log({"whose": 3.0})
    third.finish()
    assert wandb.run is second
    wandb.teardown()
    assert {b.name: b.latest()["whose"][0] for b in rollbook.open(root) if b.name != "one"} == {
        "two": 2.0,
        "three": 3.0,
    }
    assert {b.name: b.status for b in rollbook.open(root)} == dict.fromkeys(("one", "two", "three"), "finished")


def test_an_id_that_exists_goes_on_and_its_counter_too(root: Path) -> None:
    wandb.init(project="p", name="n", id="abc12345")
    for n in range(3):
        wandb.log({"a": float(n)})
    wandb.finish()
    again = wandb.init(project="p", name="n", id="abc12345", resume="must")
    assert again.resumed
    assert again.step == 3
    wandb.log({"a": 3.0})
    wandb.finish()
    assert book(root).metrics(["a"], x="step")["step"].to_pylist() == [0, 1, 2, 3]
    with pytest.raises(wandb.UsageError, match="must"):
        wandb.init(project="p", name="n", id="never123", resume="must")


def test_files_stay_inside_of_the_run(root: Path, tmp_path: Path) -> None:
    run = wandb.init(project="p")
    file = tmp_path / "model.pt"
    file.write_bytes(b"weights")
    wandb.save(str(file))
    artifact = wandb.Artifact("model", type="model")
    artifact.add_file(str(file), name="../../../escape.pt")
    artifact.add_file(str(file))
    with pytest.warns(rollbook.errors.RollbookWarning, match="escape"):  # type: ignore[attr-defined]
        run.log_artifact(artifact)
    assert (Path(run.dir) / "model.pt").read_bytes() == b"weights"
    assert (Path(run.dir) / "artifacts" / "model" / "v0" / "model.pt").read_bytes() == b"weights"
    assert not list(tmp_path.rglob("escape.pt"))


def test_an_exception_ends_the_run_crashed_and_an_exit_code_too(root: Path) -> None:
    with pytest.raises(ZeroDivisionError), wandb.init(project="p", name="raises"):
        _ = 1 / 0
    wandb.init(project="p", name="code")
    wandb.finish(exit_code=3)
    assert {b.name: b.status for b in rollbook.open(root)} == {"raises": "crashed", "code": "crashed"}


def test_the_api_finds_runs_by_filters_and_gives_their_history(root: Path) -> None:
    for lr in (0.1, 0.01):
        wandb.init(project="study", config={"lr": lr, "net": {"size": 8}}, group=f"lr{lr}", reinit=True)
        for n in range(5):
            wandb.log({"loss": lr * n})
            wandb.log({"other": 1.0}, commit=False)
        wandb.finish()
    api = wandb.Api()
    (run,) = api.runs("lab/study", filters={"config.lr": {"$lt": 0.05}, "$or": [{"state": "finished"}, {"group": "x"}]})
    assert run.group == "lr0.01"
    assert [row["loss"] for row in run.scan_history(keys=["loss"])] == [0.01 * n for n in range(5)]
    assert run.summary["loss"] == 0.04
    assert api.run(f"lab/study/{run.id}").config == {"lr": 0.01, "net": {"size": 8}}
    assert len(api.runs("study", order="-created_at")) == 2
    with pytest.raises(wandb.CommError, match="no such run"):
        api.run("lab/study/nonsense")


def test_a_sweep_runs_each_trial_of_its_grid_as_a_run_of_one_group(root: Path) -> None:
    def train() -> None:
        with wandb.init():
            wandb.log({"score": wandb.config.lr * wandb.config.size})
            if wandb.config.size == 2:
                raise RuntimeError("this one fails")

    about = {"method": "grid", "parameters": {"lr": {"values": [1, 2]}, "size": {"min": 1, "max": 2}}}
    wandb.agent(wandb.sweep(about, project="search"), train)
    runs = rollbook.open(root)
    assert sorted((b.config["lr"], b.config["size"], b.status) for b in runs) == [
        (1, 1, "finished"),
        (1, 2, "crashed"),
        (2, 1, "finished"),
        (2, 2, "crashed"),
    ]
    assert len({b.group for b in runs}) == 1
    with pytest.raises(wandb.UsageError, match="min and max"):
        wandb.sweep({"method": "random", "parameters": {"lr": {"min": 0.1}}})


@pytest.mark.parametrize(
    ("how", "status"),
    [
        (KeyboardInterrupt(), "killed"),
        (SystemExit(3), "crashed"),
        (SystemExit(0), "finished"),
        (GeneratorExit(), "crashed"),
    ],
)
def test_a_trial_that_ends_the_sweep_has_the_status_of_how_it_ended(
    how: BaseException, status: str, root: Path
) -> None:
    def train() -> None:
        wandb.init()
        wandb.log({"score": wandb.config.lr})
        raise how

    with pytest.raises(type(how)):
        wandb.agent(wandb.sweep({"method": "grid", "parameters": {"lr": {"values": [1, 2]}}}, project="search"), train)
    assert [(book.config["lr"], book.status) for book in rollbook.open(root)] == [(1, status)]


@pytest.mark.parametrize(("code", "status"), [(None, "finished"), (0, "finished"), (1, "crashed"), (130, "killed")])
def test_the_exit_code_of_finish_is_how_the_run_ended(code: int | None, status: str, root: Path) -> None:
    wandb.init(project="ends")
    wandb.finish(exit_code=code)
    assert [book.status for book in rollbook.open(root)] == [status]


class Film:
    def __init__(self, path: Path) -> None:
        self.path = str(path)


def recorders(folder: Path) -> dict[str, type]:
    """RecordVideo as in each generation of gymnasium, as far as the end of a film goes."""

    class Since10:
        video_folder, _video_name = str(folder), "film"

        def stop_recording(self) -> None:
            (folder / "film.mp4").write_bytes(b"film")
            self._video_name = ""

    class Before10:
        video_folder = str(folder)

        def __init__(self) -> None:
            self.video_recorder: Film | None = Film(folder / "film.mp4")

        def close_video_recorder(self) -> None:
            (folder / "film.mp4").write_bytes(b"film")
            self.video_recorder = None

    class Unknown:
        pass

    return {"since 1.0": Since10, "before 1.0": Before10, "unknown": Unknown}


@pytest.mark.parametrize("generation", ["since 1.0", "before 1.0", "unknown"])
def test_films_of_each_gymnasium_are_kept_and_an_unknown_one_stops_no_training(
    generation: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With gymnasium 0.29 `monitor_gym=True` raised AttributeError: every program of CleanRL passes it."""
    kind = recorders(tmp_path)[generation]
    for name in ("gymnasium", "gymnasium.wrappers"):
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(RecordVideo=kind))
    with wandb.init(project="films", monitor_gym=True) as run:
        for end in ("stop_recording", "close_video_recorder"):
            if hasattr(kind, end):
                getattr(kind(), end)()
        kept = dict(run.rollbook.bill()["drops"])
    (book,) = rollbook.open(root)
    films = [path.read_bytes() for path in book.path.rglob("*.mp4")]
    assert (films, "wandb_not_kept" in kept) == (([], True) if generation == "unknown" else ([b"film"], False))


def test_every_name_and_keyword_that_programs_use_is_there(root: Path) -> None:
    """`scripts/wandb_names.jsonl` lists what code bases use, by name and commit; the page has the result."""
    script = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "wandb_names.py"))
    of = script["objects"]()
    users = [line for line in script["listed"]() if line["names"]]
    assert len(users) >= 39
    assert {line["code_base"]: gone for line in users if (gone := script["missing"](line, of))} == {}
    assert script["PAGE"].read_text(encoding="utf-8") == script["page"](), "run python scripts/wandb_names.py"


def test_names_of_wandb_are_counted_by_what_stands_behind_a_word() -> None:
    script = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "wandb_names.py"))
    text = """
import wandb as w
from wandb.util import generate_id

class Logger:
    def open(self, config):
        self.run = w.init(project="p", id=generate_id())
        self.run.config.update(config)
        rate = self.run.config.lr
        with w.init() as run:
            run.log({"a": config.log})

class Other:
    def open(self):
        self.run = SummaryWriter()
        self.run.add_scalar("a", 1.0, 1)
"""
    uses = script["Uses"](ast.parse(text))
    assert uses.names == {
        "init": 2,
        "util.generate_id": 2,
        "run.config.update": 1,
        "run.config": 1,
        "run.log": 1,
    }
    assert uses.keywords["init"] == {"project", "id"}


def test_what_does_nothing_here_says_so_once(root: Path) -> None:
    run = wandb.init(project="p")
    picture = np.zeros((8, 6, 3), np.uint8)
    boxes = {"predictions": {"box_data": []}}

    def log() -> None:
        wandb.log({"a": 1.0, "img": wandb.Image(picture, boxes=boxes)})

    with pytest.warns(rollbook.errors.RollbookWarning, match="boxes"):  # type: ignore[attr-defined]
        log()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log()
    assert run.rollbook is not None
    assert run.rollbook.bill()["drops"] == {"wandb_not_kept": 2}
    artifact = wandb.Artifact("eval", type="eval_results")
    artifact.add(wandb.Table(columns=["n"], data=[[1], [2]]), "rows")
    run.log_artifact(artifact)
    with pytest.raises(AttributeError, match="rollbook report"):
        wandb.apis.reports.Report()
    wandb.finish()
    assert book(root).table("eval_rows")["n"].to_pylist() == [1, 2]


def test_a_logged_model_is_found_again_and_an_unknown_run_is_named(root: Path, tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_text("weights")
    with wandb.init(project="p") as run:
        wandb.log_model(str(tmp_path / "model.pt"), name="policy")
        assert (Path(wandb.use_model("policy:latest")) / "model.pt").read_text() == "weights"
        with pytest.raises(FileNotFoundError, match="logged no such model"):
            run.use_model("other")
        with pytest.raises(wandb.UsageError, match="Join it by"):
            wandb._attach("nobody")
        assert wandb._attach(run._attach_id) is run


def artifact_of(text: str, folder: Path, *aliases: str) -> Any:
    """Log an artifact "data" of one file, with a table."""
    (folder / "rows.txt").write_text(text)
    artifact = wandb.Artifact("data", type="dataset", metadata={"of": text})
    artifact.add_file(str(folder / "rows.txt"))
    wandb.log_artifact(artifact, aliases=list(aliases))
    return artifact


def test_an_artifact_has_versions_and_is_found_by_them_in_later_runs(root: Path, tmp_path: Path) -> None:
    with wandb.init(project="p", name="first"):
        assert [artifact_of(text, tmp_path, *more).name for text, *more in (("a", "best"), ("b",), ("b",))] == [
            "data:v0",
            "data:v1",
            "data:v1",
        ]
    with wandb.init(project="p", name="second") as run:
        for address, text in (("data:latest", "b"), ("data", "b"), ("lab/p/data:v0", "a"), ("data:best", "a")):
            found = run.use_artifact(address)
            assert (Path(found.download(tmp_path / address.replace(":", "_"))) / "rows.txt").read_text() == text
            assert found.metadata == {"of": text}
        with pytest.raises(wandb.CommError, match="was not found"):
            run.use_artifact("other:v7").download()
    api = wandb.Api()
    assert Path(api.artifact("p/data:v1").file(str(tmp_path / "one"))).read_text() == "b"
    assert not api.artifact_exists("p/data:v2")
    assert [one.name for one in api.runs("p")[0].logged_artifacts()] == ["data:v0", "data:v1"]


@pytest.mark.parametrize("name", ["run-[1]", "a*b", "lab/model", "ü b"])
def test_no_version_of_an_artifact_replaces_another_whatever_it_is_called(
    name: str, root: Path, tmp_path: Path
) -> None:
    with wandb.init(project="p") as run:
        for number, text in enumerate("abc"):
            (tmp_path / "rows.txt").write_text(text)
            artifact = run.log_artifact(str(tmp_path / "rows.txt"), name=name)
            assert artifact.version == f"v{number}"
            if number == 1:  # what is known of it is half written
                artifact.folder.with_name("v1.json").write_text('{"type"')
        files = sorted((root / run.project).rglob("rows.txt"))
    assert [file.read_text() for file in files] == ["a", "b", "c"]


def test_an_artifact_has_the_checksums_that_wandb_computes(root: Path, tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "x.txt").write_text("x")
    (tmp_path / "d" / "e" / "y.txt").write_text("yy")
    artifact = wandb.Artifact("a", type="t")
    assert (artifact.digest, artifact.id, artifact.state) == ("64e7c61456b10382e2f3b571ac24b659", None, "PENDING")
    artifact.add_dir(str(tmp_path / "d"))
    entries = {path: (entry.digest, entry.size) for path, entry in artifact.manifest.entries.items()}
    assert entries == {"x.txt": ("ndTkYSaMgDT1yFZOFVxnpg==", 1), "e/y.txt": ("L7HFz1iGe1u8mhsUWobzoA==", 2)}
    whole = "7778f202afb1ed05df6c59be6d574226"  # all three of wandb 0.31
    assert (artifact.digest, artifact.size, artifact.file_count) == (whole, 3, 2)
    with wandb.init(project="p") as run:
        run.log_artifact(artifact)
        found = run.use_artifact("a:latest")
    assert (found.digest, found.state, found.id) == (whole, "COMMITTED", artifact.id)
    assert [entry.path for entry in found.manifest.get_entries_in_directory("e")] == ["e/y.txt"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX")
def test_a_file_written_through_an_artifact_outlives_forked_processes_and_is_gone_at_the_end(tmp_path: Path) -> None:
    program = """
import os, sys
import rollbook.wandb as wandb
with wandb.init(project="p") as run:
    artifact = wandb.Artifact("notes", type="text")
    with artifact.new_file("d/n.txt") as file:
        file.write("seen")
    child = os.fork()
    if not child:
        sys.exit()
    os.waitpid(child, 0)
    run.log_artifact(artifact)
    print(os.path.join(run.use_artifact("notes:latest").download("out"), "d", "n.txt"), file.name, sep="\\n")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    kept, temporary = done.stdout.splitlines()[-2:]
    assert (tmp_path / kept).read_text() == "seen"
    assert not Path(temporary).parent.exists()


def test_a_table_of_an_artifact_is_read_back_in_a_later_run(tmp_path: Path) -> None:
    with wandb.init(project="p"):
        artifact = wandb.Artifact("evaluation", type="table")
        artifact.add(wandb.Table(columns=["n", "word"], data=[[1, "a"], [2, "b"]]), "answers")
        wandb.log_artifact(artifact)
    with wandb.init(project="p") as run:
        table = run.use_artifact("evaluation:latest").get("answers")
    assert (table.columns, table.data) == (["n", "word"], [[1, "a"], [2, "b"]])


def test_runs_of_the_api_are_filtered_ordered_and_read_whole(root: Path) -> None:
    for seed in (3, 1, 2):
        with wandb.init(project="p", name=f"s{seed}", config={"seed": seed}, group="g") as run:
            for n in range(seed):
                run.log({"score": float(n), "other": 1.0} if n else {"score": float(n)})
    api = wandb.Api()
    assert [run.name for run in api.runs("lab/p", order="-config.seed")] == ["s3", "s2", "s1"]
    assert [run.name for run in api.runs("p", {"$nor": [{"config.seed": 1}], "config.seed": {"$not": {"$gt": 2}}})] == [
        "s2"
    ]
    assert [run.name for run in api.runs("p", {"config.seed": {"$lt": "a text"}})] == []
    rows = api.runs("p", order="+config.seed").histories(keys=["score"])
    assert [row["score"] for row in rows] == [0.0, 0.0, 1.0, 0.0, 1.0, 2.0]
    run = api.runs("p", order="+config.seed")[0]
    run.notes, run.tags = "seen", ["good"]
    run.update()
    assert wandb.Api().run(f"p/{run.id}").notes == "seen"
    assert book(root, id=run.id).tags == ["good"]


def test_settings_of_a_trial_stay_as_the_sweep_set_them(capsys: pytest.CaptureFixture[str]) -> None:
    seen = []

    def train() -> None:
        with wandb.init(project="p", config={"lr": 0.5, "size": 1}) as run:
            wandb.config.update({"lr": 7}, allow_val_change=True)
            wandb.config.size = 2
            seen.append((run.sweep_id is not None, wandb.config.lr, wandb.config.size))

    wandb.agent(wandb.sweep({"method": "grid", "parameters": {"lr": {"values": [1, 2]}}}, project="p"), train)
    assert seen == [(True, 1, 2), (True, 2, 2)]
    assert "'lr' is set by the sweep" in capsys.readouterr().err


def test_log_code_keeps_the_sources_below_a_folder_that_are_asked_for(root: Path, tmp_path: Path) -> None:
    code = tmp_path / "code"
    for name in ("train.py", "nets/mlp.py", "notes.txt", ".git/hook.py", "venv/pyvenv.cfg", "venv/lib.py"):
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text("x = 1\n")
    with wandb.init(project="p") as run:
        kept = run.log_code(str(code))
        assert (kept.type, sorted(kept.manifest.entries)) == ("code", ["nets/mlp.py", "train.py"])
        texts = wandb.log_code(code, "texts", include_fn=lambda path, root: path.endswith(".txt"))
        assert list(texts.manifest.entries) == ["notes.txt"]
        assert run.log_code(str(code), exclude_fn=lambda path: True) is None
        copies = {path.name for path in Path(run.rollbook.folder, "files", "artifacts").rglob("*.*") if path.is_file()}
        assert {"train.py", "mlp.py", "notes.txt"} <= copies


def test_pyplot_stands_for_its_current_figure(root: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    pyplot.plot([1, 2])
    with wandb.init(project="p") as run:
        run.log({"chart": pyplot, "image": wandb.Image(pyplot)})
        pyplot.close("all")
    assert run.rollbook.book.media("figure").num_rows == 2


def test_a_table_computes_columns_from_its_rows() -> None:
    table = wandb.Table(columns=["a", "b"], data=[[1, 2], [3, 4]])
    table.add_computed_columns(lambda index, row: {"sum": row["a"] + row["b"], "place": index})
    assert (table.columns, table.data) == (["a", "b", "sum", "place"], [[1, 2, 3, 0], [3, 4, 7, 1]])
    assert table.get_index() == [0, 1]


def test_data_of_plots_are_tables() -> None:
    made = wandb.plot.confusion_matrix(y_true=[0, 0, 1], preds=[0, 1, 1], class_names=["cat", "dog"])
    assert made.data == [["cat", "cat", 1], ["cat", "dog", 1], ["dog", "dog", 1]]
    assert wandb.plot.confusion_matrix(probs=[[0.9, 0.1], [0.2, 0.8]], y_true=[1, 1]).data == [
        ["Class_2", "Class_1", 1],
        ["Class_2", "Class_2", 1],
    ]
    curve = wandb.plot.pr_curve([0, 1], [[0.9, 0.1], [0.4, 0.6]], labels=["a", "b"])
    assert (curve.columns, curve.data) == (["truth", "a", "b"], [[0, 0.9, 0.1], [1, 0.4, 0.6]])


def test_objects_that_hold_a_run_can_be_copied() -> None:
    import copy

    run = wandb.init(project="p", config={"a": 1})
    held = copy.deepcopy({"run": run, "config": dict(run.config)})
    assert held["run"] is run
    assert copy.copy(run.config)["a"] == 1


PROGRAM = """
import subprocess, sys
from importlib.metadata import version
import wandb
assert version("wandb") == wandb.__version__ and int(wandb.__version__.split(".")[1]) >= 31
try:
    import wandb.apis.internals_of_tomorrow
except ModuleNotFoundError as err:
    assert "--wandb beside" in str(err)
import wandb.sdk.data_types.video as inner
from wandb.errors import term
import wandb.errors.term
assert wandb.errors.term is term and term.termlog
from wandb.sdk.wandb_run import Run
assert inner.Video is wandb.Video
assert wandb.__name__ == "rollbook.adapters.wandb" and issubclass(type(wandb.init(project="hooked")), Run)
wandb.log({"a": 1.0})
wandb.finish()
if len(sys.argv) > 1:
    subprocess.run([sys.executable, __file__], check=True)
"""


def test_rollbook_run_records_a_program_and_its_children_without_a_change_to_it(root: Path, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "rollbook", "run", str(program), "with a child", "--wandb", "replace"]
    subprocess.run(command, check=True, timeout=PATIENCE, env={**os.environ, "ROLLBOOK_DIR": str(root)})
    runs = rollbook.open(root)
    assert [b.project for b in runs] == ["hooked", "hooked"]
    assert all(b.metrics(["a"]).num_rows == 1 for b in runs)


def test_beside_wandb_what_summary_writers_log_is_recorded_too(
    root: Path, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """wandb's service reads event files itself: with sync_tensorboard nothing passes `Run.log`."""
    from types import ModuleType, SimpleNamespace

    from rollbook.adapters import tensorboard
    from rollbook.adapters.wandb.hook import mirror

    class TheirRun:
        id, project, name, group, job_type, notes = "abc", "cleanRL", "ppo", "", "", ""
        tags, config, disabled, step, entity = (), {"seed": 3}, False, 0, "lab"

        def log(self, data: dict[str, Any], step: int | None = None) -> None: ...

        def finish(self, exit_code: int | None = None) -> None: ...

        def __enter__(self) -> TheirRun:
            return self

        def __exit__(self, *error: object) -> None: ...

    theirs: Any = SimpleNamespace(
        init=lambda **_: TheirRun(),
        patched={"tensorboard": ["writer"]},
        sdk=SimpleNamespace(wandb_run=SimpleNamespace(Run=TheirRun)),
    )
    points: list[object] = []
    native = {"add_scalar": lambda self, *point: points.append(point), "close": lambda self: None}
    tensorboardx: Any = ModuleType("tensorboardX")
    tensorboardx.SummaryWriter = type("SummaryWriter", (), {"__init__": lambda self, **_: None, **native})
    monkeypatch.setitem(sys.modules, "tensorboardX", tensorboardx)
    monkeypatch.setitem(sys.modules, "tensorboardX.writer", ModuleType("tensorboardX.writer"))
    vars(sys.modules["tensorboardX.writer"])["SummaryWriter"] = tensorboardx.SummaryWriter
    mirror(theirs)
    try:
        run = theirs.init(sync_tensorboard=True)
        writer = tensorboardx.SummaryWriter("events")
        writer.add_scalar("losses/td_loss", 0.1, 12)
        run.log({"own": 1.0})
        writer.close()
        run.finish()
    finally:
        tensorboard.uninstall()
    assert [point[0] for point in points] == ["losses/td_loss"]  # type: ignore[index]
    kept = book(root)
    assert (kept.project, kept.seed, kept.status) == ("cleanRL", 3, "finished")
    assert kept.metrics(["losses/td_loss"], x="env_step")["env_step"].to_pylist() == [12]
    assert kept.metrics(["own"]).num_rows == 1


PIXELS = {
    "int64": np.arange(48).reshape(4, 4, 3),
    "uint16": np.full((4, 4), 300, np.uint16),
    "negative": np.full((4, 4), -1),
    "0 to 255": np.full((4, 4, 3), 254.6),
    "1.5": np.full((4, 4), 1.5),
    "nan": np.full((4, 4), np.nan),
    "batch of one": np.full((1, 4, 4), 7, np.int32),
    "bool": np.ones((4, 4), bool),
}


@pytest.mark.usefixtures("sealed")
@pytest.mark.parametrize("name", list(PIXELS))
def test_pixels_of_any_type_are_kept_as_wandb_keeps_them(name: str, root: Path) -> None:
    """wandb's `astype(uint8)`: 300 is 44, -1 is 255."""
    from PIL import Image as Pillow

    pixels = PIXELS[name]
    wandb.init(project="p")
    wandb.log({"img": wandb.Image(pixels), "film": wandb.Video(np.broadcast_to(np.ravel(pixels)[0], (2, 3, 4, 4)))})
    wandb.finish()
    kept = book(root)
    assert set(kept.media().column("key").to_pylist()) == {"img", "film"}
    (path,) = (row["path"] for row in kept.media("image").to_pylist())
    first = {"uint16": 44, "negative": 255, "0 to 255": 254, "1.5": 1, "batch of one": 7, "bool": 255}.get(name, 0)
    assert int(np.asarray(Pillow.open(Path(kept.path) / path)).ravel()[0]) == first


@pytest.mark.parametrize(
    ("key", "name", "count"),
    [
        ("episodes/iter_000123", "episodes/iter", {"iteration": 123}),
        ("eval/epoch-3", "eval/epoch", {"epoch": 3}),
        ("Step 40", "Step", {"step": 40}),
        ("samples_global_step=7", "samples_global_step", {"global_step": 7}),
        ("math_500", "math_500", {}),
        ("gpt4", "gpt4", {}),
        ("epochs", "epochs", {}),
        ("minibatch3", "minibatch3", {}),
        ("batch_size_64", "batch_size_64", {}),
    ],
)
def test_only_a_number_after_a_word_that_counts_is_no_part_of_a_tables_name(
    key: str, name: str, count: dict[str, int]
) -> None:
    from rollbook.adapters.wandb._data import without_count

    assert without_count(key) == (name, count)
