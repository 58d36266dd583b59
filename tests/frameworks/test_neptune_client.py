"""The Neptune sink with Neptune's own client in its offline mode."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook
from rollbook import sinks, testing
from rollbook.protocols import Row
from rollbook.sinks.neptune import NeptuneLogger
from rollbook.values import Image

GROUPS = ("neptune",)

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde"
    b"\x00\x00\x00\x0cIDATx\x9cc\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xc9\xfe\x92\xef\x00\x00\x00\x00IEND\xaeB`\x82"
)


def operations(folder: Path) -> str:
    """All that the offline client wrote down."""
    return "".join(path.read_text("utf-8") for path in sorted((folder / ".neptune").rglob("data-*.log")))


def test_the_offline_client_writes_every_value_with_its_step(own_place, tmp_path):
    run = testing.some_run(tmp_path / "run")
    (run.folder / "media").mkdir(parents=True)
    (run.folder / "media" / "a.png").write_bytes(PNG)
    (run.folder / "media" / "b.png").write_bytes(b"no picture at all")
    sink = sinks.make("neptune", mode="offline", all=True)
    sink.open(run)
    sink.write([Row(1_700_000_000.5, {"env_step": 0}, {"train/return": 1.5, "note": "hello"})])
    sink.write([Row(1_700_000_001.5, {"env_step": 10}, {"train/return": 2.5, "bad": float("nan")}, seq=2)])
    sink.write(
        [
            Row(
                1_700_000_002.5,
                {"env_step": 10},
                {"pic": Image("media/a.png", 1, 1), "bad": Image("media/b.png", 1, 1)},
                seq=3,
            )
        ]
    )
    sink.close()
    sink.close()
    found = operations(own_place)
    assert '"path": ["train", "return"]' in found
    assert '{"value": 1.5, "step": 0, "ts": 1700000000.5}' in found
    assert '{"value": 2.5, "step": 10, "ts": 1700000001.5}' in found
    assert '"value": "hello"' in found
    assert '"path": ["config", "net", "hidden"]' in found
    assert '"path": ["pic"]' in found
    assert '"path": ["bad"]' not in found


def test_the_articles_logger_writes_to_a_run_of_todays_client(own_place):
    import neptune

    experiment = neptune.init_run(mode="offline", capture_hardware_metrics=False, source_files=[], git_ref=False)
    logger = NeptuneLogger(experiment, prefix="train", index_name="episodes")
    logger.write({"episode_return": 21.5, "episodes": 0})
    logger.write({"episode_return": 22.5, "episodes": 1})
    logger.close()
    experiment.stop()
    found = operations(own_place)
    assert '"path": ["train", "episode_return"]' in found
    assert '"value": 21.5, "step": 0' in found
    assert '"value": 22.5, "step": 1' in found


@pytest.mark.core
def test_the_example_runs_as_it_stands_and_neptune_has_what_the_book_has(own_place):
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(root / "src")}
    command = [sys.executable, str(root / "examples" / "neptune_offline.py"), "--episodes", "12"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "12 episodes" in done.stdout
    (book,) = rollbook.open("runs")
    found = operations(own_place)
    for row in book.metrics(["train/return"]).to_pylist():
        assert f'{{"value": {row["train/return"]}, "step": {row["episode"]}, ' in found
    assert '"path": ["search", "best"]' in found


def test_an_experiment_handed_to_spinning_ups_logger_gets_rows_and_configuration(own_place):
    import neptune

    from rollbook.adapters.spinningup import EpochLogger, setup_logger_kwargs

    experiment = neptune.init_run(mode="offline", capture_hardware_metrics=False, source_files=[], git_ref=False)
    arguments = setup_logger_kwargs("ppo", 0, own_place, neptune_experiment=experiment, run=False)  # as in the article
    logger = EpochLogger(**arguments)
    logger.save_config({"gamma": 0.99, "ac_kwargs": {"hidden": 64}})
    for epoch in range(2):
        logger.store(EpRet=10.0 + epoch)
        logger.log_tabular("EpRet", average_only=True)
        logger.log_tabular("TotalEnvInteracts", 400 * epoch)
        logger.dump_tabular()
    logger.close()
    experiment.stop()
    assert logger._count.counts == {}
    found = operations(own_place)
    assert '"value": 10.0, "step": 0' in found
    assert '"value": 11.0, "step": 400' in found
    assert "ac_kwargs" in found


def test_the_articles_make_logger_takes_a_run_of_todays_client(own_place):
    import neptune

    from rollbook.adapters.acme import make_logger

    experiment = neptune.init_run(mode="offline", capture_hardware_metrics=False, source_files=[], git_ref=False)
    lines = []
    logger = make_logger(experiment, "train", 0.0, smoothing_regex="return", print_fn=lines.append)
    for epoch in range(3):
        logger.write({"episode_return": 10.0 + epoch, "epoch": epoch, "skipped": None})
    logger.close()
    experiment.stop()
    assert lines
    found = operations(own_place)
    assert '"path": ["train", "episode_return"]' in found
    assert '"path": ["train", "episode_return_smoothed_0.99"]' in found
    for epoch in range(3):
        assert f'"value": {10.0 + epoch}, "step": {epoch}' in found
