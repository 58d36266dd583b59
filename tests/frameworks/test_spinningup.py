"""Spinning Up's own algorithms, unmodified, with our logger in the place of theirs."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook

GROUPS = ("spinningup",)
PROGRAM = Path(__file__).with_name("spinup_program.py")
CHECKOUT = os.environ.get("ROLLBOOK_SPINNINGUP", "")
WHY = (
    "SPINNING UP IS NOT TESTED: its repository is on no registry. Set ROLLBOOK_SPINNINGUP to a checkout of "
    "github.com/openai/spinningup at 038665d62d569055401d91856abb287263096178"
)
pytestmark = pytest.mark.skipif(not Path(CHECKOUT, "spinup", "algos").is_dir(), reason=WHY)

ALGORITHMS = {
    "vpg": {"env": "CartPole-v1", "steps_per_epoch": 400, "epochs": 4, "train_v_iters": 5},
    "ppo": {"env": "CartPole-v1", "steps_per_epoch": 400, "epochs": 4, "train_v_iters": 5, "train_pi_iters": 5},
    "sac": {
        "env": "Pendulum-v1", "steps_per_epoch": 250, "epochs": 2, "start_steps": 150, "update_after": 150,
        "update_every": 25, "num_test_episodes": 1, "max_ep_len": 100, "batch_size": 32,
    },
}  # fmt: skip


def train(which: str, algorithm: str, folder: Path, *, ranks: int = 1, **more: Any) -> str:
    arguments = json.dumps({**ALGORITHMS[algorithm], **more})
    command = [sys.executable, str(PROGRAM), CHECKOUT, which, algorithm, str(folder), arguments]
    if ranks > 1:
        mpiexec = Path(sys.executable).with_name("mpiexec")
        command = [str(mpiexec), "-n", str(ranks), *command]
    done = start(command)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def start(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Another process with this one's rollbook."""
    env = {**os.environ, "PYTHONPATH": str(Path(rollbook.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=env)


def progress(folder: Path) -> list[dict[str, str]]:
    with (folder / "progress.txt").open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def only_book(root: Path) -> Any:
    (book,) = rollbook.open(root)
    return book


@pytest.mark.parametrize("algorithm", [pytest.param("vpg", marks=pytest.mark.core), "ppo", "sac"])
def test_the_same_training_gives_the_same_numbers_in_both_files_and_in_the_book(
    algorithm: str, own_place: Path, monkeypatch: pytest.MonkeyPatch, reads_as: Any
) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(own_place / "books"))
    train("native", algorithm, own_place / "native")
    train("rollbook", algorithm, own_place / "ours")
    native, ours = progress(own_place / "native"), progress(own_place / "ours")
    assert list(native[0]) == list(ours[0])
    assert len(native) == len(ours) == ALGORITHMS[algorithm]["epochs"]
    book = only_book(own_place / "books")
    assert book.status == "finished"
    table = book.metrics(list(ours[0]), x="epoch").to_pylist()
    table = [row for row in table if row["Epoch"] is not None]
    for theirs, mine, row in zip(native, ours, table, strict=True):
        for key in theirs:
            read_back = "" if row[key] is None else row[key]
            assert read_back == ("" if mine[key] == "" else float(mine[key])), key
            if key != "Time":  # theirs are 32-bit sums
                assert float(mine[key]) == pytest.approx(float(theirs[key]), rel=2e-5, abs=2e-6), key
        assert row["env_step"] == float(mine["TotalEnvInteracts"])
    reads_as(book, {"train/return": "AverageEpRet", "update/loss/policy": "LossPi", "time/elapsed_seconds": "Time"})
    if algorithm == "sac":
        reads_as(book, {"test/return": "AverageTestEpRet", "update/loss/q": "LossQ"})


def test_with_compat_the_progress_file_has_spinning_ups_own_text(
    own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(own_place / "books"))
    train("native", "vpg", own_place / "native", epochs=2)
    train("compat", "vpg", own_place / "ours", epochs=2)
    native, ours = progress(own_place / "native"), progress(own_place / "ours")
    for row in (*native, *ours):
        row.pop("Time")
    assert ours == native


def test_what_the_epochs_average_is_in_the_book_one_by_one(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(own_place / "books"))
    train("rollbook", "vpg", own_place / "ours")
    book = only_book(own_place / "books")
    episodes = book.episodes().to_pylist()
    for row in progress(own_place / "ours"):
        mine = [episode["return"] for episode in episodes if episode["epoch"] == int(row["Epoch"])]
        assert np.mean(mine) == pytest.approx(float(row["AverageEpRet"]))
        assert np.std(mine) == pytest.approx(float(row["StdEpRet"]))
        assert (max(mine), min(mine)) == (float(row["MaxEpRet"]), float(row["MinEpRet"]))
    values = [row["store/VVals"] for row in book.metrics(["store/VVals"]).to_pylist()]
    assert len([value for value in values if value is not None]) == 4 * 400
    assert book.config["seed"] == 3
    assert book.config["gamma"] == 0.99
    assert json.loads((own_place / "ours" / "config.json").read_text())["exp_name"] == "vpg"


def test_an_epoch_without_a_finished_episode_stops_theirs_and_not_ours(
    own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(own_place / "books"))
    short = {"steps_per_epoch": 8, "epochs": 6, "max_ep_len": 1000}
    with pytest.raises(AssertionError, match=r"EpRet|IndexError|KeyError"):
        train("native", "vpg", own_place / "native", **short)
    train("rollbook", "vpg", own_place / "ours", **short)
    rows = progress(own_place / "ours")
    assert len(rows) == 6
    assert "" in [row["AverageEpRet"] for row in rows]


def test_a_folder_that_is_trained_in_again_keeps_the_first_training(
    own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(own_place / "books"))
    for _ in range(2):
        train("rollbook", "vpg", own_place / "ours", epochs=1)
    assert [row["Epoch"] for row in progress(own_place / "ours")] == ["0", "0"]


def test_two_mpi_ranks_make_one_run_with_the_statistics_of_both(
    own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(own_place / "books"))
    train("native", "ppo", own_place / "native", ranks=2)
    train("rollbook", "ppo", own_place / "ours", ranks=2)
    native, ours = progress(own_place / "native"), progress(own_place / "ours")
    assert len(ours) == len(native) == 4
    for theirs, mine in zip(native, ours, strict=True):
        for key in ("AverageEpRet", "StdEpRet", "MaxEpRet", "MinEpRet", "AverageVVals", "StdVVals"):
            assert float(mine[key]) == pytest.approx(float(theirs[key]), rel=1e-4, abs=1e-5), key
    book = only_book(own_place / "books")
    episodes = book.episodes().to_pylist()
    assert len({row["writer"] for row in episodes}) == 2
    first = [row["return"] for row in episodes if row["epoch"] == 0]
    assert np.mean(first) == pytest.approx(float(ours[0]["AverageEpRet"]))


def test_saved_agents_are_read_by_spinning_ups_own_loader(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(own_place / "books"))
    train("rollbook", "vpg", own_place / "ours", epochs=1)
    check = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import spinup_program as p;"
        "p.enter(pathlib.Path(sys.argv[2]));"
        "import rollbook.adapters.spinningup; rollbook.adapters.spinningup.install();"
        "import torch, functools; torch.load = functools.partial(torch.load, weights_only=False);"
        "from spinup.utils.test_policy import load_pytorch_policy as load; import numpy as np;"
        "action = load(sys.argv[3], '')(np.zeros(4)); print('action', action)"
    )
    arguments = [str(PROGRAM.parent), CHECKOUT, str(own_place / "ours")]
    done = start([sys.executable, "-c", check, *arguments])
    assert "action" in done.stdout, done.stderr[-2000:]
    saved = only_book(own_place / "books").checkpoints(everything=True).to_pylist()
    assert saved[-1]["path"].endswith("model.pt")


def test_their_plotter_reads_our_files(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(own_place / "books"))
    train("rollbook", "vpg", own_place / "data" / "vpg" / "vpg_s3")
    check = (
        "import sys, types, pathlib; sys.path.insert(0, sys.argv[1]); import spinup_program as p;"
        "p.enter(pathlib.Path(sys.argv[2]));"
        "[sys.modules.setdefault(n, types.ModuleType(n)) for n in ('seaborn', 'matplotlib', 'matplotlib.pyplot')];"
        "from spinup.utils.plot import get_datasets; (frame,) = get_datasets(sys.argv[3]);"
        "print(frame['Condition1'][0], frame['Performance'].tolist() == frame['AverageEpRet'].tolist(), len(frame))"
    )
    arguments = [str(PROGRAM.parent), CHECKOUT, str(own_place / "data" / "vpg")]
    done = start([sys.executable, "-c", check, *arguments])
    assert "vpg True 4" in done.stdout, done.stdout + done.stderr[-2000:]
