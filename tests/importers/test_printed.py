"""Logs that programs print: each row once, on its counter, and nothing that is no training."""

# ruff: noqa: E501  (a table: one form of log a line)

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import rollbook
import wild
from rollbook.formats.importers import choose, printed


def stable_baselines(n: int) -> str:
    rule = "-" * 33
    cells = {
        "rollout/": "",
        "   ep_rew_mean": f"{n}.5",
        "time/": "",
        "   fps": 900,
        "   total_timesteps": 2048 * (n + 1),
    }
    return "\n".join([rule, *(f"| {name:18} | {value!s:8} |" for name, value in cells.items()), rule, ""])


def block(n: int) -> str:
    begin = f"{'#' * 60}\n      Learning iteration {n}/1500\n\n   Computation: 9830{n} steps/s (collection: 0.5s)\n"
    return f"{begin}      Mean reward: {n}.50\n{'-' * 60}\n      Total timesteps: {98304 * (n + 1)}\n      ETA: 10{n}.5s\n\n"


PRINTED: dict[str, tuple[Callable[[int], str], str, str, list[int]]] = {
    # a row, its key, its x-axis, the readings of five rows
    "one line": (lambda n: f"Episode {n}, Total Reward: {n}.5, Epsilon: 0.{n}\n", "train/return", "episode", [0, 1, 2, 3, 4]),
    "a level and a time": (lambda n: f"2026-01-01 10:00:0{n},123 - INFO - Epoch {n}/30: loss={n}.5 | lr: 1e-3\n", "loss", "epoch", [0, 1, 2, 3, 4]),
    "brackets": (lambda n: f"[10:00:0{n}] [INFO] [Update {n}/99] Step: {100 * n}/9900 | FPS: 35 | ETA: 21:53:50\n   WinRate: {n}.5\n", "WinRate", "gradient_step", [0, 1, 2, 3, 4]),
    "the number first": (lambda n: f"  [{1000 * n:8} eps] reward={n}.5  steps=52.9\n", "train/return", "episode", [0, 1000, 2000, 3000, 4000]),
    "verl in a worker of Ray": (lambda n: f"\x1b[36m(TaskRunner pid=77)\x1b[0m step:{n} - actor/kl:0.1 - critic/score/mean:np.float64({n}.5)\n", "critic/score/mean", "step", [0, 1, 2, 3, 4]),
    "transformers": (lambda n: f"{{'loss': {n}.5, 'grad_norm': 1.5, 'epoch': 0.0{n}}}\n", "loss", "step", [0, 1, 2, 3, 4]),
    "tables of Stable-Baselines3": (stable_baselines, "train/return", "env_step", [2048, 4096, 6144, 8192, 10240]),
    "blocks of rsl_rl": (block, "train/return", "epoch", [0, 1, 2, 3, 4]),
}  # fmt: skip

BEFORE = "Using device: cuda:0\nConfig: seed: 3, lr: 0.1, episodes: 500\nLoading 3 of 4 parts\n"


@pytest.mark.parametrize("form", PRINTED)
def test_each_printed_row_is_a_row_on_its_counter(form: str, tmp_path: Path) -> None:
    row, key, x, readings = PRINTED[form]
    (tmp_path / "study" / "ppo").mkdir(parents=True)
    (tmp_path / "study" / "ppo" / "train.log").write_text(
        BEFORE + "".join(map(row, range(5))) + "Done: saved 3 files\n"
    )
    (book,) = rollbook.open(tmp_path / "study")
    series = book.series(key, x=x)
    assert series.x.tolist() == readings
    assert series.mean.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert "seed" not in {*book.keys()}


def test_a_training_that_begins_again_in_a_log_is_a_run_of_its_own(tmp_path: Path) -> None:
    lines = [f"Epoch {n}: mean loss={n + k}.5\n" for k in (0, 10) for n in range(1, 5)]
    (tmp_path / "ppo.log").write_text("".join(lines))
    runs = rollbook.open(tmp_path)
    assert sorted(book.name for book in runs) == ["ppo", "ppo-2"]
    assert runs.one("ppo-2").series("mean_loss").mean.tolist() == [11.5, 12.5, 13.5, 14.5]


@pytest.mark.parametrize(
    "line",
    [
        "10:00:0{n} GET /index 200 time=0.{n}\n",
        "step {n}: compiling file{n}.c\n",
        "Downloading: {n}0% | 1{n}/100 MB\n",
        "installed package {n} of 9, size: {n}.5 MB\n",
        "2026-01-01 10:00:0{n} worker {n}: reward service is up\n",
    ],
)
def test_a_log_of_anything_else_is_no_run(line: str, tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("".join(line.format(n=n) for n in range(9)))
    runs = rollbook.open(tmp_path)
    assert len(runs) == 0
    assert not runs.problems


def test_what_was_printed_is_left_alone_where_the_training_left_more(tmp_path: Path) -> None:
    printed = "".join(map(PRINTED["one line"][0], range(5)))
    for name in ("logs", "alone/logs", "results/ppo", "hydra/0"):
        (tmp_path / "study" / name).mkdir(parents=True)
        (tmp_path / "study" / name / "main.log").write_text(printed)
    wild.put_sb3_progress(tmp_path / "study" / "results" / "ppo", iter([1.0, 2.0, 3.0]))  # logs/ lies beside results/
    wild.put_sb3_tensorboard(tmp_path / "study" / "hydra" / "0" / "tb", iter([1.0, 2.0, 3.0]))
    rows = rollbook.open(tmp_path / "study").rows()
    assert {row["name"]: row["made_by"] for row in rows} == {
        "alone": "printed log",
        "results-ppo": "CSV table",
        "hydra-0": "TensorBoard event files",
    }


def test_a_log_that_grows_adds_its_rows(tmp_path: Path) -> None:
    line, key, x, _readings = PRINTED["one line"]
    file = tmp_path / "train.log"
    file.write_text("".join(map(line, range(4))) + "Episode 4, Total Rew")
    (book,) = rollbook.open(tmp_path)
    assert book.series(key, x=x).mean.tolist() == [0.5, 1.5, 2.5]  # the fourth row may still get values
    file.write_text("".join(map(line, range(6))))
    os.utime(file, (1.7e9, 1.7e9))
    (book,) = rollbook.open(tmp_path)
    assert book.series(key, x=x).mean.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]


def test_a_file_of_rows_is_not_asked_about_because_a_program_might_have_printed_it(tmp_path: Path) -> None:
    rows = tmp_path / "run.jsonl"
    rows.write_text("".join(f'{{"step": {step}, "loss": {1 / (step + 1)}}}\n' for step in range(9)))
    assert choose(rows) == "jsonl"


def test_a_log_that_has_not_changed_is_not_read_to_be_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    log = tmp_path / "logs" / "train.log"
    log.parent.mkdir()
    row = PRINTED["one line"][0]
    log.write_text("".join(map(row, range(5))) * 2)
    read: list[Path] = []
    whole = printed._trainings_in

    def counted(file: Path) -> int:
        read.append(file)
        return whole(file)

    monkeypatch.setattr(printed, "_trainings_in", counted)
    for more in ("", "", "".join(map(row, range(5)))):
        with open(log, "a") as out:
            out.write(more)
        assert len(list(printed.Printed().runs(log.parent))) == (3 if more else 2)
    assert read == [log, log]
