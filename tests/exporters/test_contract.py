"""Every exporter of the registry keeps the contract of exporters, and its files hold what the run has."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.app import app
from rollbook.errors import BadInput, MissingExtra
from rollbook.formats import exporters, importers
from rollbook.formats.datasets import StepSource
from rollbook.formats.datasets._png import pixels

SCORES = {"metric": "test/return", "by": "config.algo"}
ASKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "mcap": ("arm", "episodes.mcap", {}),
    "rerun": ("arm", "episodes.rrd", {}),
    "rliable": ("study", "scores.npz", SCORES),
    "marl-eval": ("study", "metrics.json", SCORES),
}
"""What is exported, into which file, with which options."""
PACKAGES = {"mcap": "mcap", "rerun": "rerun"}
NOTHING: dict[str, dict[str, Any]] = {"steps": {"episodes": ["none"]}, "": {**SCORES, "by": "config.nothing"}}
"""Options for which there is nothing to write."""


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in sorted(folder.rglob("*")) if file.is_file()
    }


def test_every_exporter_of_the_registry_is_asked_for_something_here() -> None:
    assert set(ASKED) == set(exporters.names())


@pytest.mark.parametrize("name", exporters.names())
def test_an_export_writes_one_file_as_a_whole_and_changes_no_run(name: str, study: Path, tmp_path: Path) -> None:
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    project, file, options = ASKED[name]
    before = contents(study)
    runs = rollbook.open(study / project)
    out = tmp_path / "out" / file
    with pytest.raises(BadInput, match="no folder"):
        exporters.export(runs, name, out, **options)
    out.parent.mkdir()
    counts = exporters.export(runs, name, out, **options)
    assert counts
    assert all(isinstance(n, int) and n > 0 for n in counts.values()), counts
    written = out.read_bytes()
    assert [path.name for path in out.parent.iterdir()] == [file]
    with pytest.raises(BadInput):
        exporters.export(runs, name, out, **{**options, **NOTHING[exporters.make(name, **options).table]})
    assert [path.name for path in out.parent.iterdir()] == [file]
    assert out.read_bytes() == written
    assert contents(study) == before


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_package_is_named_with_the_line_that_installs_it(
    name: str, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [module for module in sys.modules if module.partition(".")[0] == PACKAGES[name]]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    with pytest.raises(MissingExtra, match=rf"rollbook(-core)?\[{name}\]"):
        exporters.export(rollbook.open(study / "arm"), name, tmp_path / "out", **ASKED[name][2])
    assert not list(tmp_path.iterdir())


def test_mcaps_own_reader_finds_every_step_and_picture(study: Path, tmp_path: Path) -> None:
    reading = pytest.importorskip("mcap.reader")
    out = tmp_path / "episodes.mcap"
    done = CliRunner().invoke(app, ["export", "arm", "--to", "mcap", "-o", str(out), "--dir", str(study)])
    assert "2 episodes, 6 steps, 8 pictures" in done.output, done.output
    with open(out, "rb") as file:
        reader = reading.make_reader(file)
        messages = [(schema.name, channel.topic, message) for schema, channel, message in reader.iter_messages()]
        facts = {record.name: record.metadata for record in reader.iter_metadata()}
    assert facts["rollbook"]["name"] == "reach"
    assert json.loads(facts["rollbook"]["config"]) == {"lr": 0.1}
    source = StepSource(rollbook.open(study / "arm").last())
    steps = [(message.log_time, json.loads(message.data)) for _, topic, message in messages if topic == "/step"]
    shown = [message for schema, topic, message in messages if topic == "/obs/camera"]
    assert {schema for schema, topic, _ in messages if topic == "/obs/camera"} == {"foxglove.CompressedImage"}
    for trajectory in source:
        said = [(nanos, step) for nanos, step in steps if step["episode"] == trajectory.episode_id]
        assert [nanos for nanos, _ in said][:3] == trajectory.times.tolist()
        assert [step["t"] for _, step in said] == [0, 1, 2, 3]
        joints = [step["obs"]["joints"] for _, step in said]
        assert joints == [*trajectory.columns["obs/joints"].tolist(), trajectory.last["obs/joints"].tolist()]
        assert [step.get("reward") for _, step in said] == [0.5, 1.0, 1.5, None]
        assert [step.get("action") for _, step in said] == [0, 1, 2, None]
        assert said[0][1]["info"] == {"word": "go"}
        pictures = [json.loads(message.data) for message in shown]
        mine = [pixels(base64.b64decode(one["data"])) for one in pictures if one["frame_id"] == trajectory.episode_id]
        expected = [*trajectory.columns["obs/camera"], trajectory.last["obs/camera"]]
        np.testing.assert_array_equal(mine, expected)
    rows = [json.loads(message.data) for _, topic, message in messages if topic == "/episode"]
    assert [row["return"] for row in rows] == [3.0, 3.0]


@pytest.mark.parametrize("ending", ["npz", "json"])
def test_scores_for_rliable_are_those_of_compare(study: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"scores.{ending}"
    words = ["-O", "metric=test/return", "-O", "by=config.algo", "-O", "score=last"]
    done = CliRunner().invoke(app, ["export", "study", "--to", "rliable", "-o", str(out), "--dir", str(study), *words])
    assert "2 groups, 6 scores" in done.output, done.output
    if ending == "npz":
        scores = dict(np.load(out))
    else:
        said = json.loads(out.read_text())
        scores = {name: np.array(matrix) for name, matrix in said["scores"].items()}
        assert said["tasks"] == [""]
    compared = rollbook.open(study / "study").compare("test/return", "config.algo", score="last")
    assert {group.label: group.scores_RT.tolist() for group in compared.groups} == {
        name: matrix.tolist() for name, matrix in scores.items()
    }
    assert sorted(scores["ppo"].ravel()) == [37.0, 38.0, 39.0]


def test_a_seed_that_lacks_a_task_is_left_out_of_rliables_matrix_and_counted(tmp_path: Path) -> None:
    for task, seeds in (("ant", 2), ("hopper", 1)):
        for seed in range(seeds):
            config = {"algo": "ppo", "task": task}
            with rollbook.init("p", "r", config=config, seed=seed, dir=tmp_path, sinks=[], keeper="inline") as run:
                run.log({"test/return": 1.0 + seed}, env_step=1)
    counts = exporters.export(rollbook.open(tmp_path), "rliable", tmp_path / "s.npz", **SCORES, task="config.task")
    assert counts == {"groups": 1, "scores": 2, "runs without a score of every task": 1}
    assert np.load(tmp_path / "s.npz")["ppo"].tolist() == [[1.0, 1.0]]


def test_evaluations_for_marl_eval_come_back_by_its_importer(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "metrics.json"
    words = ["-O", "metric=test/return", "-O", "by=config.algo", "-O", "score=last"]
    done = CliRunner().invoke(
        app, ["export", "study", "--to", "marl-eval", "-o", str(out), "--dir", str(study), *words]
    )
    assert "6 runs, 24 evaluations" in done.output, done.output
    steps = json.loads(out.read_text())["study"]["study"]["ppo"]["seed_2"]
    assert steps["step_1"]["step_count"] == 100
    assert steps["step_1"]["return"] == [12.0, 16.0]
    assert steps["step_3"]["return"] == [39.0], "the episodes of that step have another mean: the logged value stays"
    assert steps["absolute_metrics"] == {"return": [39.0]}
    back = {run.name: run for run in importers.make("marl_eval").runs(out)}
    assert len(back) == 6
    rows = [row for row in back["study-dqn-seed_1"].rows() if row.table == "metrics"]
    assert [row.values.get("return") for row in rows[:4]] == [3.0, 13.0, 23.0, 33.0]
    assert [row.clocks["env_step"] for row in rows[:4]] == [0, 100, 200, 300]
    assert not back["study-dqn-seed_1"].left_out


def test_what_can_be_exported_is_listed_and_a_wrong_word_is_answered(study: Path, tmp_path: Path) -> None:
    listed = CliRunner().invoke(app, ["export", "--formats"]).output
    assert all(name in listed for name in exporters.names())
    wrong = CliRunner().invoke(app, ["export", "arm", "--to", "mcab", "-o", str(tmp_path / "x"), "--dir", str(study)])
    assert wrong.exit_code
    assert "mcab" in wrong.output or "mcab" in str(wrong.exception)
    lost = CliRunner().invoke(app, ["export", "arm", "--to", "mcap", "--dir", str(study)])
    assert "-o FILE" in lost.output
