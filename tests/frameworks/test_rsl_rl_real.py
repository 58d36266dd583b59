"""rsl_rl itself: PPO on points of the plane, on the CPU; the environment is that of the example."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

import pytest

GROUPS = ("loggers",)

pytest.importorskip("rsl_rl")

import torch  # noqa: E402
from rsl_rl.runners import OnPolicyRunner  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.rsl_rl import RollbookWriter  # noqa: E402

EXAMPLE = Path(__file__).parents[2] / "examples" / "rsl_rl_ppo.py"


def points() -> Any:
    spec: Any = importlib.util.spec_from_file_location("rsl_rl_ppo", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Points(8)


class Watched(RollbookWriter):
    """Keeps what rsl_rl wrote."""

    given: ClassVar[dict[str, list[tuple[int, float]]]] = defaultdict(list)

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        self.given[tag].append((global_step, float(scalar_value)))
        super().add_scalar(tag, scalar_value, global_step)


def configuration(logger: object, seed: int) -> dict[str, Any]:
    network = {"class_name": "MLPModel", "hidden_dims": [8], "activation": "elu"}
    return {
        "seed": seed,
        "num_steps_per_env": 20,
        "save_interval": 2,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.5}},
        "critic": dict(network),
        "algorithm": {"class_name": "PPO", "num_learning_epochs": 1, "num_mini_batches": 1},
        "logger": {"class_name": logger, "keeper": "inline", "project": "points", "name": "ppo"},
    }


@pytest.mark.core
def test_every_number_of_a_training_is_read_back(own_place: Path) -> None:
    torch.manual_seed(0)
    OnPolicyRunner(points(), configuration(Watched, 7), log_dir="logs/points/ppo").learn(4)
    (book,) = rollbook.open("runs")
    assert (book.project, book.name, book.seed, book.status) == ("points", "ppo", 7, "finished")
    kept = {tag: given for tag, given in Watched.given.items() if not tag.endswith("/time")}
    assert {"Loss/value", "Train/mean_reward", "Perf/total_fps"} <= set(kept)
    for tag, given in kept.items():
        series = book.series(tag, x="step")
        assert list(zip(series.x.tolist(), series.mean.tolist(), strict=True)) == given, tag
    assert book.config["env"]["task"] == "points"
    assert book.config["train"]["num_steps_per_env"] == 20
    assert {Path(row["path"]).name for row in book.checkpoints(everything=True).to_pylist()} == {
        "model_0.pt",
        "model_2.pt",
        "model_3.pt",
    }
    assert book.problems() == []
