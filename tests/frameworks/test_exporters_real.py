"""What exporters write, opened by the tools that it is for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.formats import exporters

GROUPS = ("viewers", "rliable")
GROUP = os.environ.get("ROLLBOOK_FRAMEWORK_GROUP", "")

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two algorithms, two tasks, two seeds."""
    root = tmp_path_factory.mktemp("study")
    for algo, skill in (("ppo", 3.0), ("dqn", 1.0)):
        for task in ("ant", "hopper"):
            for seed in range(2):
                config = {"algo": algo, "task": task}
                with rollbook.init("p", algo, config=config, seed=seed, dir=root, sinks=[], keeper="inline") as run:
                    for n in range(4):
                        run.log({"test/return": skill * n + seed}, env_step=100 * n)
    return rollbook.open(root)


@pytest.mark.skipif(GROUP != "viewers", reason="needs rerun-sdk")
def test_rerun_reads_every_number_and_picture_of_an_episode(tmp_path: Path) -> None:
    from rerun.chunk import RrdReader

    from rollbook.capture import TransitionRecorder
    from rollbook.formats.datasets import StepSource
    from rollbook.formats.datasets._png import pixels

    rng = np.random.default_rng(0)
    frames = rng.integers(0, 255, (4, 12, 10, 3), dtype=np.uint8)
    joints = rng.normal(size=(4, 2))
    with rollbook.init("arm", "reach", dir=tmp_path, sinks=[], keeper="inline") as run:
        steps = TransitionRecorder(run.scope("train"))
        for t in range(3):
            obs, after = ({"camera": frames[n], "joints": joints[n]} for n in (t, t + 1))
            steps.add(obs=obs, action=t, reward=0.5 * t, next_obs=after, terminated=t == 2)
        steps.close()
    book = rollbook.open(tmp_path).last()
    out = tmp_path / "episodes.rrd"
    assert exporters.export(book, "rerun", out) == {"episodes": 1, "steps": 3, "pictures": 6}
    trajectory = next(iter(StepSource(book)))
    batches = {chunk.entity_path: chunk.to_record_batch() for chunk in RrdReader(out).stream().to_chunks()}
    where = f"/episodes/{trajectory.episode_id}"
    cells = {name: dict(zip(batch.schema.names, batch.columns, strict=True)) for name, batch in batches.items()}
    reward = cells[f"{where}/reward"]
    assert reward["step"].to_pylist() == [0, 1, 2]
    assert reward["time"].cast("int64").to_pylist() == trajectory.times.tolist()
    assert reward["Scalars:scalars"].to_pylist() == [[0.0], [0.5], [1.0]]
    np.testing.assert_array_equal(cells[f"{where}/obs/joints"]["Scalars:scalars"].to_pylist(), joints[:3])
    blobs = cells[f"{where}/obs/camera"]["EncodedImage:blob"].to_pylist()
    np.testing.assert_array_equal([pixels(bytes(blob[0])) for blob in blobs], frames[:3])


@pytest.mark.skipif(GROUP != "rliable", reason="needs rliable")
def test_rliable_takes_the_matrix_as_it_is(study: Any, tmp_path: Path) -> None:
    from rliable import library, metrics

    asked = {"metric": "test/return", "by": "config.algo", "task": "config.task", "score": "last"}
    exporters.export(study, "rliable", tmp_path / "scores.npz", **asked)
    scores = dict(np.load(tmp_path / "scores.npz"))
    points, intervals = library.get_interval_estimates(
        scores, lambda table: np.array([metrics.aggregate_mean(table)]), reps=50
    )
    assert {name: point.tolist() for name, point in points.items()} == {"ppo": [9.5], "dqn": [3.5]}
    assert intervals["ppo"].shape == (2, 1)


@pytest.mark.skipif(GROUP != "rliable", reason="needs marl-eval")
def test_marl_eval_makes_its_matrices_of_the_file(study: Any, tmp_path: Path) -> None:
    import json

    processing = pytest.importorskip("marl_eval.utils.data_processing_utils")
    asked = {"metric": "test/return", "by": "config.algo", "task": "config.task", "score": "last"}
    exporters.export(study, "marl-eval", tmp_path / "metrics.json", **asked)
    raw = json.loads((tmp_path / "metrics.json").read_text())
    processed = processing.data_process_pipeline(raw, metrics_to_normalize=["return"])
    assert processed["extra"]["number_of_runs"] == 2
    assert processed["extra"]["algorithm_list"] == ["ppo", "dqn"]
    final, along = processing.create_matrices_for_rliable(processed, "p", ["return"])
    assert final["mean_norm_return"]["ppo"].shape == (2, 2)
    assert along["mean_norm_return"]["ppo"].shape == (2, 2, 4)
    np.testing.assert_allclose(final["mean_norm_return"]["ppo"][:, 0], np.array([9, 10]) / 10, rtol=1e-5)
    assert final["mean_norm_return"]["dqn"][:, 1] == pytest.approx(np.array([3, 4]) / 10, rel=1e-5)
