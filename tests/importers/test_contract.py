"""Every importer of the registry keeps the contract of importers."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from rollbook import testing
from rollbook.formats import importers
from rollbook.formats.importers import _registry as importers_registry
from rollbook.sinks.event_files import Messages
from rollout_dumps import nemo_batches, prime_traces, slime_dumps, tinker_summaries, verl_dumps

WRITTEN = Path(__file__).parent / "samples"
"""What the tools themselves wrote: the make_*.py there say how."""


def slime_with_torch(folder: Path) -> Path:
    pytest.importorskip("torch")
    return slime_dumps(folder)


def event_files(folder: Path) -> Path:
    """A folder with one event file of scalars."""
    messages = Messages("the tests")
    made = folder / "tb"
    made.mkdir()
    with open(made / "events.out.tfevents.1.host", "wb") as file:
        file.write(messages.framed(messages.version(1.7e9)))
        for n in range(40):
            file.write(messages.framed(messages.event(1.7e9 + n, 10 * n, [messages.scalar("loss", 1 / (n + 1))])))
    return made


def progress_csv(folder: Path) -> Path:
    """A progress.csv as Stable-Baselines3 writes it."""
    path = folder / "progress.csv"
    lines = ["time/total_timesteps,time/time_elapsed,train/loss,rollout/ep_rew_mean"]
    lines += [f"{2048 * n},{3 * n},{1 / (n + 1)!r},{'' if n < 2 else 20 + n}" for n in range(40)]
    path.write_text("\n".join(lines) + "\n")
    return path


def wandb_run(folder: Path) -> Path:
    """An offline run as wandb wrote it."""
    made = folder / "offline-run-20261123_000000-k3v9x2ab"
    made.mkdir()
    shutil.copy(Path(__file__).parent / "samples" / "run-k3v9x2ab.wandb", made)
    return made


def mlflow_store(folder: Path) -> Path:
    """A file store as MLflow wrote it."""
    shutil.copytree(Path(__file__).parent / "samples" / "mlruns", folder / "mlruns")
    return folder / "mlruns"


def json_lines(folder: Path) -> Path:
    """A metrics.jsonl as the Dreamer family writes it."""
    path = folder / "metrics.jsonl"
    path.write_text("".join(f'{{"step": {128 * n}, "train/return": {n / 2}}}\n' for n in range(40)))
    return path


SQL = {"trackio": "study.db", "goodseed": "projects/study/runs/rapid-heron.sqlite"}


def of_database(name: str) -> Callable[[Path], Path]:
    """A database that a tool wrote, from its dump."""

    def make(folder: Path) -> Path:
        path = folder / SQL[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(path)) as made:
            made.executescript((WRITTEN / f"{name}.sql").read_text())
        return path

    return make


def copied(name: str) -> Callable[[Path], Path]:
    """A file or folder as a tool wrote it."""
    copy = shutil.copytree if (WRITTEN / name).is_dir() else shutil.copyfile
    return lambda folder: Path(copy(WRITTEN / name, folder / Path(name).name))


SAMPLES: dict[str, Callable[[Path], Path]] = {
    "acme": copied("acme"),
    "csv": progress_csv,
    "goodseed": of_database("goodseed"),
    "marl_eval": copied("marl_eval/metrics.json"),
    "neptune": copied("neptune"),
    "sb3": copied("sb3"),
    "scalar_files": copied("torchrl"),
    "swanlab": copied("swanlab"),
    "trackio": of_database("trackio"),
    "trl": copied("trl/completions"),
    "trainer_state": copied("trainer"),
    "jsonl": json_lines,
    "mlflow": mlflow_store,
    "tensorboard": event_files,
    "wandb": wandb_run,
    "nemo_rl": nemo_batches,
    "prime_rl": prime_traces,
    "slime": slime_with_torch,
    "tinker": tinker_summaries,
    "verl_rollouts": verl_dumps,
}


@pytest.mark.parametrize("check", testing.IMPORTER_CHECKS.values(), ids=testing.IMPORTER_CHECKS)
@pytest.mark.parametrize("name", importers.names())
def test_an_importer_keeps_the_contract(name: str, check: Any, tmp_path: Path) -> None:
    (tmp_path / "sample").mkdir()
    (tmp_path / "work").mkdir()
    check(lambda: importers.make(name), SAMPLES[name](tmp_path / "sample"), tmp_path / "work")


@pytest.mark.parametrize(
    "name", some_of(importers.names(), lambda name: name in ("csv", "jsonl", "tensorboard", "wandb"))
)
def test_hydras_configuration_next_to_the_files_is_the_runs_where_the_tool_has_no_other(
    name: str, tmp_path: Path
) -> None:
    sample = SAMPLES[name](tmp_path)
    runs = list(importers.make(name).runs(sample))
    for run in runs:
        hydra = run.files[0].parent / ".hydra"
        hydra.mkdir(exist_ok=True)
        (hydra / "config.yaml").write_text("robot: {name: ant, mass: 0.5}\nseed: 11\n")
    done = importers.import_runs(sample, format=name, dir=tmp_path / "imported")
    for run, imported in zip(runs, done, strict=True):
        (book,) = rollbook.open(imported.folder)
        assert book.config["robot"] == {"name": "ant", "mass": 0.5}
        assert {name: book.config[name] for name in run.config} == run.config
        assert book.seed == (11 if run.seed is None else run.seed)


@pytest.mark.parametrize("name", importers.names())
def test_an_importer_says_what_its_runs_are(name: str) -> None:
    what = importers_registry.what(name)
    assert what != name
    assert 0 < len(what) <= 30


def test_every_importer_of_the_registry_has_a_sample_here() -> None:
    assert set(SAMPLES) == set(importers.names())
