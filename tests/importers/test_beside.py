"""With the rows come the configuration, the seed and the group, and nothing of it is ever run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import rollbook
from rollbook.formats import importers
from rollbook.formats.importers._metadata import config_near
from rollbook.protocols import ForeignRun
from rollbook.sinks.event_files import Messages

BESIDE = Path(__file__).parent / "samples" / "beside"
"""Written by the tools themselves: samples/make_beside.py."""


def runs_of(name: str, format: str = "tensorboard") -> dict[str, ForeignRun]:
    return {run.name: run.read_details() for run in importers.make(format).runs(BESIDE / name)}


def test_cleanrls_table_is_the_configuration_and_its_seeds_are_one_group() -> None:
    runs = runs_of("cleanrl")
    assert list(runs) == ["CartPole-v1__ppo__1__1790000001", "CartPole-v1__ppo__2__1790000002"]
    assert [(run.seed, run.group) for run in runs.values()] == [(1, "ppo"), (2, "ppo")]
    assert runs["CartPole-v1__ppo__1__1790000001"].config == {
        "exp_name": "ppo",
        "seed": 1,
        "torch_deterministic": True,
        "env_id": "CartPole-v1",
        "learning_rate": 2.5e-4,
        "target_kl": None,
    }


def test_a_run_of_cleanrl_without_its_table_is_known_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "Ant-v4__sac__7__1790000001"
    folder.mkdir()
    (folder / "progress.csv").write_text("global_step,loss\n1,2.0\n")
    (run,) = importers.make("csv").runs(folder)
    assert (run.seed, run.group, run.config["env_id"]) == (7, "sac", "Ant-v4")


def test_hyper_parameters_of_the_plugin_belong_to_the_run_above_their_folder() -> None:
    (run,) = runs_of("hparams").values()
    assert run.name == "sac"
    assert (run.config, run.seed) == ({"lr": 3e-4, "seed": 11, "net": "mlp", "tuned": True}, 11)
    rows = list(run.rows())
    assert [row.values["loss"] for row in rows[:8]] == pytest.approx([1 / n for n in range(1, 9)], rel=1e-7)
    assert rows[8].values == {"hparam/return": 99.5}
    assert (run.status, run.left_out) == ("finished", {})


@pytest.mark.parametrize(
    ("name", "format", "seed", "group", "some"),
    [
        ("hydra", "tensorboard", 4, "reach", {"algo": {"name": "sac", "lr": 0.1}, "seed": 4}),
        ("isaac", "tensorboard", 42, "cartpole_direct", {"agent": {
            "seed": 42, "experiment_name": "cartpole_direct", "policy": {"actor_hidden_dims": [32, 32]}}}),
        ("zoo/CartPole-v1_1", "csv", 5, None, {"algo": "ppo", "hyperparams": {
            "batch_size": 256, "ent_coef": 0.0, "n_timesteps": 1e5}}),
    ],
)  # fmt: skip
def test_files_beside_the_rows_are_the_configuration(
    name: str, format: str, seed: int, group: str | None, some: dict[str, Any]
) -> None:
    (run,) = runs_of(name, format).values()
    assert (run.seed, run.group) == (seed, group)
    assert {key: run.config[key] for key in some} == some


def test_versions_of_lightnings_loggers_are_called_like_the_folder_above_with_the_seed_of_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sheeprl's runs are `<run_name>/version_0`: three formats, their folders opened from far above and from near."""
    messages = Messages("the tests")
    event = messages.framed(messages.event(1.7e9, 1, [messages.scalar("loss", 0.5)]))
    for format, name, content in (
        ("csv", "metrics.csv", b"step,loss\n1,0.5\n"),
        ("jsonl", "metrics.jsonl", b'{"step": 1, "loss": 0.5}\n'),
        ("tensorboard", "events.out.tfevents.1.host", event),
    ):
        for n, called in enumerate((f"walk_{format}", f"walk_{format}-version_1")):
            folder = tmp_path / "logs" / f"walk_{format}" / f"version_{n}"
            folder.mkdir(parents=True)
            (folder / name).write_bytes(content)
            (folder / "config.yaml").write_text(f"seed: {40 + n}\n")
            (run,) = importers.make(format).runs(folder)
            assert (run.name, run.read_details().seed) == (called, 40 + n)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert sorted((book.name, book.seed) for book in rollbook.open(tmp_path / "logs")) == [
        (f"walk_{format}{end}", seed)
        for format in ("csv", "jsonl", "tensorboard")
        for end, seed in (("", 40), ("-version_1", 41))
    ]


def test_tags_of_python_are_plain_data() -> None:
    (run,) = runs_of("isaac").values()
    assert run.config["env"] == {
        "sim": {"dt": 0.01, "device": "cuda:0", "gravity": [0.0, 0.0, -9.81]},
        "seed": 42,
        "only": [None, None, None],
        "class_type": "__main__.Sensor",
        "sensor": {},
        "scale": {"names": ["a", "b"], "func": "posixpath.join"},
    }


@pytest.mark.parametrize(
    "text",
    [
        "seed: 1\nx: !!python/object/apply:os.system ['touch {there}']",
        "seed: 1\nx: !!python/object/new:subprocess.Popen [['touch', '{there}']]",
        "seed: 1\nx: !!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ['{there}']]",
    ],
)
def test_nothing_that_a_yaml_file_names_is_run(text: str, tmp_path: Path) -> None:
    there = tmp_path / "there"
    (tmp_path / "config.yaml").write_text(text.format(there=there))
    assert config_near(tmp_path)["seed"] == 1
    assert not there.exists()


def test_a_configuration_in_python_is_read_as_literals_and_not_run(tmp_path: Path) -> None:
    there = tmp_path / "there"
    (tmp_path / "log" / "serial").mkdir(parents=True)
    (tmp_path / "total_config.py").write_text(
        f"import pathlib\npathlib.Path({str(there)!r}).touch()\n"
        "exp_config = {'seed': 3, 'policy': {'lr': 1e-3, 'dims': (1, 2), 'kind': torch.nn.ReLU, 'n': inf}}\n"
    )
    config = config_near(tmp_path / "log" / "serial")
    assert config == {"seed": 3, "policy": {"lr": 1e-3, "dims": [1, 2], "kind": "torch.nn.ReLU", "n": "inf"}}
    assert not there.exists()


def test_a_file_that_would_grow_without_end_or_is_damaged_is_no_configuration(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 12)]
    for text in ("\n".join(lines), "[" * 300_000, "a: [1, 2", "- 1\n- 2", "a: \x00", "&a [*a]", "a: &a {b: *a}"):
        (tmp_path / "config.yaml").write_text(text)
        assert config_near(tmp_path) == {}, text[:40]
    (tmp_path / "params.json").write_text('{"lr": [1, 2')
    assert config_near(tmp_path) == {}


@pytest.mark.parametrize(
    ("folder", "seed", "group"),
    [("ant/ppo_s3", 3, "ppo"), ("ppo/seed_12", 12, "ppo"), ("ppo/seed=4", 4, "ppo"), ("x/cls3", None, None)],
)
def test_a_seed_in_the_name_of_a_folder_is_the_seed_and_the_rest_the_group(
    folder: str, seed: int | None, group: str | None, tmp_path: Path
) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "progress.txt").write_text("Epoch\tTotalEnvInteracts\n0\t4000\n")
    (run,) = importers.make("csv").runs(tmp_path / folder)
    assert (run.seed, run.group) == (seed, group)


def test_parts_of_a_tag_in_folders_of_their_own_are_keys_of_one_run(tmp_path: Path) -> None:
    """`add_scalars("loss", {"actor": …, "critic": …})` writes a folder for each part, with one tag in all of them."""
    from rollbook.sinks.event_files import Messages

    messages = Messages("the tests")
    for part, tag in (("", "return"), ("train_loss_actor", "train/loss"), ("train_loss_critic", "train/loss")):
        folder = tmp_path / "run" / part
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "events.out.tfevents.1.host", "wb") as file:
            for n in range(3):
                file.write(messages.framed(messages.event(1.7e9 + n, n, [messages.scalar(tag, n + 0.5)])))
    (run,) = importers.make("tensorboard").runs(tmp_path)
    keys = {key for row in run.rows() for key in row.values}
    assert keys == {"return", "train/loss/actor", "train/loss/critic"}
    assert EventAccumulator(str(tmp_path / "run" / "train_loss_actor")).Reload().Tags()["scalars"] == ["train/loss"]
