"""rollbook-core as it is installed, beside old pins and beside nothing: killed, resumed, and judged elsewhere."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import rollbook
from rollbook.book.repair.doctor import repair, verify
from waiting import PATIENCE

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")]

ROOT = Path(__file__).resolve().parents[2]
NONE = """
import os, random, signal, sys
import rollbook

root, algo, seed, attempt = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
run = rollbook.init("pins", f"{algo}-{seed}", seed=seed, config={"algo": algo}, dir=root, sinks=["jsonl"],
                    resume="must" if attempt > 1 else "never")
random.seed(seed)
gain, begun = {"good": 2.0, "bad": 1.0}[algo], 0
if attempt > 1:
    begun = run.restore().state["iteration"]
for iteration in range(begun, 12):
    run.log({"test/return": gain * iteration + random.random()}, env_step=iteration)
    run.log_episode(**{"return": gain, "length": iteration}, env_step=iteration)
    if iteration % 3 == 2:
        run.save_checkpoint({"iteration": iteration + 1}, env_step=iteration)
    if attempt == 1 and iteration == 7:
        os.kill(os.getpid(), signal.SIGKILL)
run.finish()
assert run.bill()["drops"] == {}, run.bill()
assert "numpy" not in sys.modules
"""
OLD = """
import os, signal, sys
import gymnasium, numpy as np
import rollbook

assert np.__version__.startswith("1."), np.__version__
root, algo, seed, attempt = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
run = rollbook.init("pins", f"{algo}-{seed}", seed=seed, config={"algo": algo}, dir=root, sinks=["jsonl"],
                    resume="must" if attempt > 1 else "never")
env = rollbook.RecordEpisodes(gymnasium.make("CartPole-v1"), run.scope("train"))
rng = np.random.default_rng(seed)
begun, weights = 0, np.array([0.0, 0.0, 1.0, 1.0]) if algo == "good" else np.array([0.0, 0.0, -1.0, -1.0])
if attempt > 1:
    saved = run.restore(generators={"numpy": rng})
    begun, weights = saved.state["iteration"], saved.state["weights"]
    assert weights.dtype == np.float64
for iteration in range(begun, 12):
    observation, _ = env.reset(seed=100 * seed + iteration)
    total, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(int(observation @ weights > 0))
        total, over = total + reward, terminated or truncated
    run.log({"test/return": total, "norm": np.linalg.norm(weights)}, env_step=iteration)
    run.log_histogram("weights", weights + rng.normal(size=4), env_step=iteration)
    run.log_image("frame", np.full((4, 6, 3), iteration, np.uint8), env_step=iteration)
    if iteration % 3 == 2:
        state = {"iteration": iteration + 1, "weights": weights}
        run.save_checkpoint(state, rng={"numpy": rng}, env_step=iteration)
    if attempt == 1 and iteration == 7:
        os.kill(os.getpid(), signal.SIGKILL)
run.finish()
assert run.bill()["drops"] == {}, run.bill()
"""
ENVIRONMENTS = {"old pins": (OLD, ["numpy<2", "gymnasium==0.29.1"]), "nothing": (NONE, [])}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of rollbook-core, without the page."""
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(out), str(ROOT)]
    made = subprocess.run(pip, env={**os.environ, "ROLLBOOK_NO_PAGE": "1"}, capture_output=True, text=True)
    if made.returncode and "Could not find a version that satisfies the requirement hatchling" in made.stderr:
        pytest.skip("no package index can be reached from here")
    assert made.returncode == 0, made.stderr
    (built,) = out.glob("rollbook_core-*.whl")
    return built


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_rollbook_core_trains_there_and_rollbook_reads_seals_judges_and_ships_it(
    name: str, wheel: Path, tmp_path: Path
) -> None:
    program, packages = ENVIRONMENTS[name]
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", wheel, *packages], check=True, capture_output=True)
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for algo in ("good", "bad"):
        for seed in range(4):
            for attempt in (1, 2):
                command = [
                    str(python),
                    "-W",
                    "error",
                    "-c",
                    program,
                    str(tmp_path / "runs"),
                    algo,
                    str(seed),
                    str(attempt),
                ]
                done = subprocess.run(
                    command, env=clean, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
                )
                assert done.returncode == (-signal.SIGKILL if attempt == 1 else 0), done.stderr
    shutil.copytree(tmp_path / "runs", tmp_path / "copied")
    runs = rollbook.open(tmp_path / "copied")
    before = [book.metrics(["test/return"], x="env_step").to_pylist() for book in runs]
    assert [len(rows) for rows in before] == [12] * 8
    assert {len(book.attempts) for book in runs} == {2}
    assert all(book.episodes().num_rows == 12 for book in runs)
    sentences = " ".join(runs.compare("test/return", by="config.algo", score="last").sentences())
    assert "good" in sentences
    for book in runs:
        repair(book.path)
        assert verify(book.path) == []
    sealed = rollbook.open(tmp_path / "copied")
    assert [book.metrics(["test/return"], x="env_step").to_pylist() for book in sealed] == before
    remote = (tmp_path / "remote").as_uri()
    (tmp_path / "remote").mkdir()
    subprocess.run([sys.executable, "-m", "rollbook", "push", sealed[0].path, remote], check=True, capture_output=True)
    shipped = rollbook.open(remote).one()
    assert shipped.metrics(["test/return"], x="env_step").to_pylist() == before[0]
