"""JSON lines of several tools."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import rollbook
from rollbook.formats.importers import import_runs
from rollbook.formats.importers.jsonl import JsonLines
from rollbook.protocols import ForeignRun, Row


def read(path: Path, **options: str) -> tuple[ForeignRun, list[Row]]:
    (run,) = JsonLines(**options).runs(path)
    return run, list(run.rows())


def test_the_result_json_of_ray_tune_gives_its_configuration_once_and_its_counters_as_clocks(tmp_path: Path) -> None:
    lines = [
        {
            "config": {"lr": 0.001, "seed": 5, "env": "CartPole-v1"},
            "training_iteration": n,
            "num_env_steps_sampled_lifetime": 4000 * n,
            "timestamp": 1_700_000_000 + 10 * n,
            "time_total_s": 10.0 * n,
            "env_runners": {"episode_return_mean": 20.0 * n},
            "done": False,
        }
        for n in range(1, 6)
    ]
    (tmp_path / "result.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run, rows = read(tmp_path)
    assert (run.config, run.seed) == ({"lr": 0.001, "seed": 5, "env": "CartPole-v1"}, 5)
    assert [row.values["env_runners/episode_return_mean"] for row in rows] == [20.0 * n for n in range(1, 6)]
    assert [row.clocks["env_step"] for row in rows] == [4000 * n for n in range(1, 6)]
    assert [row.time for row in rows] == [1_700_000_000 + 10 * n for n in range(1, 6)]
    assert not any(name.startswith("config") for row in rows for name in row.values)


def test_numbers_that_are_no_json_are_numbers_and_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_text('{"step": 1, "loss": NaN}\n{"step": 2, "loss": Infinity}\n{"step": 3, "lo')
    run, rows = read(tmp_path)
    assert [row.clocks["step"] for row in rows] == [1, 2]
    assert math.isnan(rows[0].values["loss"])  # type: ignore[arg-type]
    assert rows[1].values["loss"] == math.inf
    assert run.left_out == {"lines that are half written": 1}
    assert import_runs(tmp_path, dir=tmp_path / "runs")[0].rows == 2
    with open(file, "a") as out:
        out.write('ss": 0.5}\n[1, 2]\n')
    (done,) = import_runs(tmp_path, dir=tmp_path / "runs")
    assert (done.rows, done.left_out) == (1, {"lines that are no JSON object": 1})


def test_the_configuration_beside_the_lines_is_taken_and_a_counter_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"seed": 2, "net": {"size": 64}}')
    (tmp_path / "metrics.jsonl").write_text('{"updates": 7, "a": {"b": 1.5}, "l": [1]}\n')
    run, rows = read(tmp_path, clock="updates=gradient_step")
    assert (run.config, run.seed, run.name) == ({"seed": 2, "net": {"size": 64}}, 2, tmp_path.name)
    assert rows[0].clocks == {"gradient_step": 7}
    assert rows[0].values == {"updates": 7, "a/b": 1.5}
    assert run.left_out == {"lists": 1}


@pytest.mark.parametrize("content", [b"", b"\n\n", b"[" * 100_000, b"\xff\xfe{}\n", b'"text"\n'])
def test_what_is_no_such_file_is_not_found_and_raises_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(content)
    assert not JsonLines().finds(tmp_path)
    assert read(tmp_path)[1] == []


def test_numbers_in_quotes_are_numbers_and_ids_stay_texts(tmp_path: Path) -> None:
    lines = [{"step": str(n), "loss": f"tensor({n}.5)", "lr": "1e-4", "run_id": "77", "note": "v2"} for n in range(3)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (book,) = rollbook.open(tmp_path)
    assert book.series("loss", x="step").mean.tolist() == [0.5, 1.5, 2.5]
    assert book.metrics(["lr"]).column("lr").to_pylist() == [1e-4] * 3
    assert "run_id" not in {*book.keys()}
