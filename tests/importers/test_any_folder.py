"""Any folder of results: every value comes out once, in one run that can be told from all others."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rollbook
import wild
from cases import examples, some_of
from rollbook.cli.app import app
from rollbook.formats.importers import found, import_runs
from rollbook.runs.catalog import stamped
from rollbook.runs.colours import keep


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def values_of(book: rollbook.Book) -> list[float]:
    """The numbers of a run above 1,000: those that a test has put there."""
    found = [
        value
        for row in book.metrics().to_pylist()
        for key, value in row.items()
        if isinstance(value, float) and value > 1000 and key not in ("time",) and not key.startswith("clock")
    ]
    told = {*found}
    return [*found, *(row["return"] for row in book.table("episodes").to_pylist() if row["return"] not in told)]


def command(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


NAMES = ("ppo", "Hopper-v4", "seed_0", "seed_1", "logs", "run_1", "a")
TREES = st.dictionaries(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(tuple),
    st.lists(st.sampled_from(sorted(wild.TOOLS)), min_size=1, max_size=2, unique=True),
    min_size=1,
    max_size=4,
)


def check_tree(tree: dict[tuple[str, ...], list[str]], root: Path) -> None:
    new = itertools.count(2000)
    numbers = (float(n) for n in new)
    put: list[float] = []
    for place, tools in tree.items():
        for tool in tools:
            put += wild.TOOLS[tool](root.joinpath(*place), numbers)
    runs = rollbook.open(root)
    assert not [problem for problem in runs.problems if "no importer reads" in problem]
    got = sorted(value for book in runs for value in values_of(book))
    assert got == sorted(put), (tree, runs.problems)
    names = [f"{row['project']}/{row['name']}" for row in runs.rows()]
    assert len(set(names)) == len(names) == len({row["id"] for row in runs.rows()})
    done = import_runs(root, dir=root.parent / "imported")
    brought = rollbook.open(root.parent / "imported")
    assert sorted((row["name"], row["seed"], row["group"], row["algo"], row["env"]) for row in runs.rows()) == sorted(
        (row["name"], row["seed"], row["group"], row["algo"], row["env"]) for row in brought.rows()
    ), str(done)
    assert sorted(value for book in brought for value in values_of(book)) == sorted(put)


@example({("ppo",): ["evaluations"], ("ppo", "run_1"): ["tensorboard"], ("ppo", "seed_1"): ["tensorboard"]})
@example({("a",): ["progress", "tensorboard"], ("a", "logs"): ["evaluations"]})
@example({("ppo",): ["mlflow"], ("ppo", "ppo"): ["mlflow"]})
@example({("logs",): ["monitor"], ("logs", "ppo", "seed_0"): ["progress"], ("logs", "a"): ["d3rlpy", "table"]})
@settings(max_examples=examples(4))
@given(TREES)
def test_of_folders_of_many_tools_every_value_comes_out_once_in_one_run(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[tuple[str, ...], list[str]]
) -> None:
    check_tree(tree, tmp_path_factory.mktemp("tree") / "study")


@pytest.mark.parametrize("tool", some_of(sorted(wild.TOOLS), 5))
def test_two_runs_of_one_name_are_two_runs(tool: str, tmp_path: Path) -> None:
    """The same folder twice is what a copy is; what was added to either is shown in that one alone."""
    check_tree({("mine", "ppo"): [tool], ("theirs", "ppo"): [tool]}, tmp_path / "study")


def test_a_copy_of_a_store_changes_the_id_of_no_run(tmp_path: Path) -> None:
    wild.TOOLS["mlflow"](tmp_path / "ppo", iter([1.0, 2.0, 3.0]))
    (row,) = rollbook.open(tmp_path).rows()
    shutil.copytree(tmp_path / "ppo", tmp_path / "backup" / "of" / "ppo")
    assert row["id"] in {each["id"] for each in rollbook.open(tmp_path).rows()}
    assert len(rollbook.open(tmp_path).rows()) == 2


def test_runs_of_one_name_in_two_experiments_of_mlflow_have_ids_of_their_own(tmp_path: Path) -> None:
    for n, experiment in enumerate(("walking", "running")):
        run = tmp_path / "mlruns" / str(n) / f"{n:032d}"
        for part in ("metrics", "params", "tags"):
            (run / part).mkdir(parents=True)
        (run.parent / "meta.yaml").write_text(f"experiment_id: '{n}'\nname: {experiment}\n")
        (run / "meta.yaml").write_text(f"run_id: {run.name}\nrun_name: ppo\nstatus: 3\nlifecycle_stage: active\n")
        (run / "metrics" / "return").write_text(f"1700000000000 {n} 0\n")
    rows = rollbook.open(tmp_path).rows()
    assert sorted((row["project"], row["name"]) for row in rows) == [("running", "ppo"), ("walking", "ppo")]
    assert len({row["id"] for row in rows}) == 2


def listed(root: Path) -> dict[str, dict[str, Any]]:
    """The runs of a folder by name."""
    return {row["name"]: row for row in rollbook.open(root).rows()}


def test_what_lies_above_a_run_hides_no_run(tmp_path: Path) -> None:
    """The layout of Stable-Baselines3's tutorial, and its likes with other files above."""
    for n, above in enumerate(("evaluations", "monitor", "progress", "jsonl", "d3rlpy")):
        logs = tmp_path / "project" / f"logs_{n}"
        wild.TOOLS[above](logs, iter([1.0, 2.0, 3.0]))
        for k in (1, 2, 3):
            wild.events(logs / f"PPO_{k}", {"rollout/ep_rew_mean": [1.0 * k, 2.0 * k]})
    names = set(listed(tmp_path / "project"))
    assert names == {f"logs_{n}" for n in range(5)} | {f"logs_{n}-PPO_{k}" for n in range(5) for k in (1, 2, 3)}


@pytest.mark.parametrize("tool", ["progress", "tensorboard", "jsonl", "spinningup", "table"])
def test_a_path_tells_algorithm_environment_and_seed_and_nothing_is_averaged_over_them(
    tool: str, tmp_path: Path
) -> None:
    root = tmp_path / "study"
    for algo, level in (("ppo", 100.0), ("sac", 300.0)):
        for env in ("Hopper-v4", "Ant-v4"):
            for seed in (0, 1, 2):
                wild.TOOLS[tool](root / algo / env / f"seed_{seed}", iter([level, level, level + seed]))
    rows = rollbook.open(root).rows()
    assert sorted((row["algo"], row["env"], row["seed"], row["name"]) for row in rows) == [
        (algo, env, seed, f"{algo}-{env}-seed_{seed}")
        for algo in ("ppo", "sac")
        for env in ("Ant-v4", "Hopper-v4")
        for seed in (0, 1, 2)
    ]
    assert {row["group"] for row in rows} >= {"ppo/Hopper-v4", "sac/Ant-v4"} or tool == "spinningup"
    done = command(
        "compare", root, "--by", "algo", "--task", "env", "-m", "score" if tool == "jsonl" else "train/return"
    )
    assert done.exit_code == 0, done.output
    assert "repeat" not in done.output
    assert all(word in done.output for word in ("ppo", "sac", "3"))
    folder = next(row for row in rows if row["seed"] == 0)["folder"]
    assert set(folder) == {"level1", "level2", "level3", "repeated"}
    assert len(rollbook.open(root, where="folder.level1 = 'ppo' and env = 'Ant-v4'")) == 3
    assert {"algo", "seed", "env"} <= set(rows[0]["from_path"])


def test_numbers_alone_are_no_seeds_and_groups_that_nothing_tells_apart_are_said_to_be(tmp_path: Path) -> None:
    root = tmp_path / "study"
    for place in ("one/0", "one/1", "one/2", "two/0", "two/1"):
        wild.put_any_table(root / place, iter([1.0, 2.0, 3.0]))
    rows = listed(root)
    assert set(rows) == {"one-0", "one-1", "one-2", "two-0", "two-1"}
    assert {row["seed"] for row in rows.values()} == {None}
    assert {row["group"] for row in rows.values()} == {"one", "two"}
    said = command("compare", root, "--by", "group", "-m", "train/return").output
    assert "neither files nor paths say the algorithm or the configuration" in " ".join(said.split())
    whole = rollbook.open(root).curves("train/return", by=None)
    assert any("folders say different things (one, two)" in sentence for sentence in whole.sentences())
    for place in ("one", "two"):
        assert command("label", root / place, f"algo={'ppo' if place == 'one' else 'sac'}").exit_code == 0
    mixed = rollbook.open(root).curves("train/return", by=None).sentences()
    assert any("takes 2 algorithms together (ppo, sac)" in sentence for sentence in mixed)


def test_long_names_stay_different_in_lists_and_on_disk(tmp_path: Path) -> None:
    root = tmp_path / "study"
    names = ["a_rather_long_name_of_an_experiment_with_many_settings_" * 3 + f"ensemble{n}_and_more" for n in (1, 3, 5)]
    for name in names:
        wild.put_sb3_tensorboard(root / name, iter([1.0, 2.0, 3.0]))
    rows = listed(root)
    assert len(rows) == 3
    assert {row["config"]["ensemble"] for row in rows.values()} == {1, 3, 5}
    assert len({row["group"] for row in rows.values()}) == 3


def test_monitor_files_of_several_environments_are_read_as_stable_baselines3_does(tmp_path: Path) -> None:
    """By time, all together; alone, too, they answer the return."""
    folder = tmp_path / "study" / "ppo_s1"
    for n in range(8):
        wild.monitor(
            folder / f"{n}.monitor.csv", [float(10 * n + k) for k in range(10)], [100] * 10, start=1.7e9 + n / 10
        )
    (row,) = rollbook.open(tmp_path / "study").rows()
    assert (row["env"], row["algo"], row["seed"]) == ("Hopper-v4", "ppo", 1)
    (book,) = rollbook.open(tmp_path / "study")
    returns = book.series("train/return", x="env_step")
    assert returns.x.tolist() == [100.0 * (n + 1) for n in range(80)]
    assert returns.mean.tolist() == [10.0 * n + k for k in range(10) for n in range(8)]
    assert book.series("train/length", x="env_step").mean.tolist() == [100.0] * 80
    assert command("plot", tmp_path / "study", "--key", "train/return", "-o", tmp_path / "p.png").exit_code == 0


def test_what_ls_shows_comes_with_one_import_and_again_without_a_change(tmp_path: Path) -> None:
    """RL Zoo: event files, evaluations, Monitor files and configuration in two trees."""
    root = tmp_path / "zoo"
    for n in (1, 2):
        folder = root / "logs" / "ppo" / f"CartPole-v1_{n}"
        wild.put_evaluations(folder, iter([1.0, 2.0, 3.0]))
        wild.put_monitor(folder, iter([4.0, 5.0, 6.0]))
        (folder / "CartPole-v1").mkdir()
        (folder / "CartPole-v1" / "args.yml").write_text(f"algo: ppo\nenv: CartPole-v1\nseed: {40 + n}\n")
        (folder / "CartPole-v1" / "config.yml").write_text("gamma: 0.98\n")
        wild.put_sb3_tensorboard(root / "tb" / "CartPole-v1" / f"PPO_{n}", iter([7.0, 8.0, 9.0]))
    done = command("import", root, "--dir", tmp_path / "runs")
    assert done.exit_code == 0, done.output
    shown, brought = listed(root), listed(tmp_path / "runs")
    fields = ("seed", "group", "algo", "env", "config", "from_path", "status", "created", "ended")
    assert {name: [row[f] for f in fields] for name, row in brought.items()} == {
        name: [row[f] for f in fields] for name, row in shown.items()
    }
    assert {row["seed"] for row in brought.values()} == {41, 42, None}
    again = command("import", root, "--dir", tmp_path / "runs")
    assert again.output.count("nothing new") == len(shown) == 4


def test_a_folder_of_tables_is_a_run_each_and_columns_divide_them(tmp_path: Path) -> None:
    root = tmp_path / "tables"
    for n in range(3):
        wild.table(root / "a" / f"PPO_x_log_{n}.csv", {"episode": [0, 1], "reward": [1.0 * n, 2.0]})
    lines = [f"{algo},{seed},{step},{seed + step}.5" for algo in ("ppo", "sac") for seed in (0, 1) for step in (0, 1)]
    (root / "long.csv").write_text("\n".join(["algo,seed,step,return", *lines]) + "\n")
    for split in ("train", "eval"):
        wild.table(
            root / "drq" / f"{split}.csv", {"step": [1, 2], "episode_reward": [3.0, 4.0 if split == "eval" else 5.0]}
        )
    tag = "rollout_ep_rew_mean"
    (root / "tb").mkdir()
    (root / "tb" / f"run-PPO_1-tag-{tag}.csv").write_text(
        "Wall time,Step,Value\n1700000000.0,10,1.5\n1700000001.0,20,2.5\n"
    )
    export = (
        '"Step","ppo_s0 - return","ppo_s0 - return__MIN","sac_s1 - return","sac_s1 - return__MIN"\n1,1.5,1.5,2.5,2.5\n'
    )
    (root / "wandb_export.csv").write_text(export)
    (root / "seeds.csv").write_text("step,seed0,seed1\n0,1.5,2.5\n1,2.5,3.5\n")
    rows = listed(root)
    assert set(rows) == {
        "a-PPO_x_log_0", "a-PPO_x_log_1", "a-PPO_x_log_2", "long-ppo-seed0", "long-ppo-seed1", "long-sac-seed0",
        "long-sac-seed1", "drq", "tb-PPO_1", "wandb_export-ppo_s0", "wandb_export-sac_s1", "seeds-seed0", "seeds-seed1",
    }  # fmt: skip
    assert {
        (rows[f"long-{a}-seed{s}"]["algo"], rows[f"long-{a}-seed{s}"]["seed"]) for a in ("ppo", "sac") for s in (0, 1)
    } == {(a, s) for a in ("ppo", "sac") for s in (0, 1)}
    runs = rollbook.open(root)
    assert runs.one("long-sac-seed1").series("return", x="step").mean.tolist() == [1.5, 2.5]
    assert runs.one("drq").series("test/return").mean.tolist() == [3.0, 4.0]
    assert runs.one("drq").series("train/return").mean.tolist() == [3.0, 5.0]
    assert runs.one("tb-PPO_1").series("train/return", x="step").x.tolist() == [10, 20]
    assert runs.one("wandb_export-sac_s1").series("return", x="step").mean.tolist() == [2.5]


def test_how_and_when_a_run_ended_is_what_its_tool_says(tmp_path: Path) -> None:
    """However it was read first: while an exception of ours is handled, too."""
    root = tmp_path / "project"
    wild.put_mlflow(root / "failed", iter([1.0, 2.0, 3.0]))
    meta = next(root.rglob("meta.yaml"))
    meta.write_text(
        meta.read_text().replace("status: 3", "status: 4") + "start_time: 1500000000000\nend_time: 1500000060000\n"
    )
    try:
        raise ValueError("ours")
    except ValueError:
        (row,) = rollbook.open(root).rows()
    assert (row["status"], row["created"]) == ("crashed", 1.5e9)
    (book,) = rollbook.open(root)
    assert book.failure is not None
    assert book.failure["type"] == "FAILED, says MLflow"
    shown = command("show", "last", "--dir", root).output
    assert "ended by FAILED, says MLflow" in shown
    assert "ours" not in shown
    assert "years ago" in shown


def test_rows_without_a_time_of_their_own_say_nothing_about_when(tmp_path: Path) -> None:
    wild.put_evaluations(tmp_path / "study" / "a", iter([1.0, 2.0, 3.0]))
    (row,) = rollbook.open(tmp_path / "study").rows()
    assert (row["created"], row["ended"]) == (None, None)
    assert "ago" not in command("ls", tmp_path / "study").output


def test_evaluations_of_the_first_stable_baselines3_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "study" / "run"
    folder.mkdir(parents=True)
    values = np.arange(6.0).reshape(3, 2, 1)
    np.savez(folder / "evaluations.npz", timesteps=np.array([1, 2, 3]), results=values, ep_lengths=np.ones((3, 2), int))
    (book,) = rollbook.open(tmp_path / "study")
    assert book.series("test/return", x="env_step").mean.tolist() == [0.5, 2.5, 4.5]
    assert len(book.episodes()) == 6


def test_add_scalars_of_tensorboardx_is_one_run(tmp_path: Path) -> None:
    """`<run>/<tag>/<part>`: as on-policy's MAPPO writes it, where parts are tags, and with other parts."""
    logs = tmp_path / "study" / "rmappo" / "run1" / "logs"
    wild.events(logs, {})
    for tag in ("value_loss", "average_episode_rewards", "agent0/ratio"):
        wild.events(logs / tag / tag, {tag: [1.5, 2.5]})
    for part in ("train", "eval"):
        wild.events(logs / "aver_rewards" / part, {"aver_rewards": [3.5, 4.5]})
    (book,) = rollbook.open(tmp_path / "study")
    assert book.name == "rmappo-run1"
    assert book.keys() == [
        "agent0/ratio",
        "aver_rewards/eval",
        "aver_rewards/train",
        "average_episode_rewards",
        "value_loss",
    ]


@pytest.mark.parametrize(
    ("config", "text", "rows", "seed"),
    [
        ("config.yaml", "seed: 7\nenv_id: Ant\n", "summaries", 7),  # rl_games
        ("configuration.yaml", "env_settings: {seed: 7, env_id: Ant}\n", "Behavior", 7),  # ML-Agents
        ("config.json", '{"seed": 7, "env": "Ant"}', ".summary/0", 7),  # Sample Factory
        ("variant.json", '{"seed": 7, "env": "Ant"}', "", 7),  # rlkit, garage
        ("config.yaml", "seed: 7\nenv: Ant\n", "some/other", None),  # above several runs: not the seed of one
    ],
)
def test_the_configuration_may_be_above_the_rows(
    config: str, text: str, rows: str, seed: int | None, tmp_path: Path
) -> None:
    place = tmp_path / "study" / "exp"
    wild.put_sb3_tensorboard(place / rows, iter([1.0, 2.0, 3.0]))
    (place / config).write_text(text)
    (row,) = rollbook.open(tmp_path / "study").rows()
    assert row["seed"] == seed
    assert "Ant" in str(row["config"])
    (book,) = rollbook.open(tmp_path / "study")
    assert book.info.imported["sources"]["config"] == str(place / config)


def test_files_of_a_training_in_one_folder_are_one_run_with_each_value_once(tmp_path: Path) -> None:
    """progress.csv and event files of one logger; what only one of them has comes along, on the same clock."""
    folder = tmp_path / "study" / "ppo"
    wild.table(folder / "progress.csv", {"time/total_timesteps": [10, 20, 30], "rollout/ep_rew_mean": [1.5, 2.5, 3.5]})
    wild.events(folder, {"rollout/ep_rew_mean": [1.5, 2.5, 3.5], "extra": [7.0, 8.0, 9.0]})
    file = folder / "events.out.tfevents.1.host"
    (book,) = rollbook.open(tmp_path / "study")
    assert book.metrics(["rollout/ep_rew_mean"]).num_rows == 3
    assert book.series("extra").mean.tolist() == [7.0, 8.0, 9.0]
    assert str(file) in str(book.info.imported["files"]) or file.name in str(book.info.imported["files"])
    wild.events(folder, {"rollout/ep_rew_mean": [100.0, 200.0, 300.0]}, "events.out.tfevents.2.host")
    (book,) = rollbook.open(tmp_path / "study")
    assert book.series("rollout/ep_rew_mean").mean.tolist() == [1.5, 2.5, 3.5], "no curve mixes two files"
    assert [key for key in sorted([*book.keys()]) if "rollout" in key] == [
        "rollout/ep_rew_mean",
        "rollout/ep_rew_mean (tensorboard)",
    ]


def test_ml_agents_timers_are_a_run_where_its_event_files_are_gone_and_none_beside_them(tmp_path: Path) -> None:
    import wild
    from foreign_samples import ml_agents_run

    home = ml_agents_run(tmp_path).parent
    (book,) = rollbook.open(tmp_path)
    assert (book.name, book.seed) == ("walker-1", 7)
    assert book.series("train/return", x="env_step").mean.tolist() == [25.5]
    assert book.keys() == ["Environment/Cumulative Reward", "Is Training", "Policy/Learning Rate"]
    wild.events(home / "Walker", {"Environment/Cumulative Reward": [1.0, 2.0]})
    (book,) = rollbook.open(tmp_path)
    assert book.series("train/return").mean.tolist() == [1.0, 2.0]


def test_sacreds_runs_have_their_metrics_configuration_and_end(tmp_path: Path) -> None:
    from foreign_samples import sacred_run

    (tmp_path / "sacred").mkdir()
    sacred_run(tmp_path / "sacred")
    runs = rollbook.open(tmp_path / "sacred")
    assert runs.problems == []
    (book,) = runs
    assert (book.seed, book.config["lr"]) == (3, 0.01)
    assert book.series("train/return", x="step").mean.tolist() == [0.5, 1.5, 2.5]
    assert book.series("test/return", x="env_step").x.tolist() == [100, 200]
    assert book.failure is not None
    assert book.failure["type"] == "FAILED, says Sacred: ValueError: boom"


def test_scores_without_a_tool_are_runs_and_what_would_be_a_guess_is_refused_in_words(tmp_path: Path) -> None:
    root = tmp_path / "study"
    root.mkdir()
    for n in range(3):
        np.save(root / f"TD3_Hopper-v2_{n}.npy", np.array([1.5, 2.5]))
    (root / "dqn.json").write_text('{"a": 1}')
    (root / "keras").mkdir()
    (root / "keras" / "log.json").write_text(json.dumps({"episode": [0, 1], "episode_reward": [1.0, 2.0]}))
    (root / "pfrl").mkdir()
    (root / "pfrl" / "scores.txt").write_text("steps\tepisodes\telapsed\tmean\n100\t1\t2.5\t7.5\n200\t2\t5.0\t8.5\n")
    (root / "hw").mkdir()
    (root / "hw" / "log.txt").write_text("Time\tIteration\tAverageReturn\n1.5\t0\t10.5\n2.5\t1\t20.5\n")
    np.save(root / "rewards.npy", np.zeros((3, 4)))
    runs = rollbook.open(root)
    assert {row["name"] for row in runs.rows()} == {*(f"TD3_Hopper-v2_{n}" for n in range(3)), "keras", "pfrl", "hw"}
    assert {(row["algo"], row["env"]) for row in runs.rows() if "TD3" in row["name"]} == {("td3", "Hopper-v2")}
    (problem,) = runs.problems
    assert "3 x 4" in problem
    assert runs.one("pfrl").series("test/return").mean.tolist() == [7.5, 8.5]
    assert runs.one("hw").series("train/return").mean.tolist() == [10.5, 20.5]
    assert runs.one("keras").series("train/return").x.tolist() == [0, 1]


def test_a_person_may_say_what_files_do_not_and_take_it_back(tmp_path: Path) -> None:
    root = tmp_path / "study"
    for name in ("x/one", "x/two", "y/three"):
        wild.put_jsonl(root / name, iter([1.0, 2.0, 3.0]))
    before = {path: path.read_bytes() for path in root.rglob("*.jsonl")}
    done = command("label", f"{root}/x/*", "algo=ppo", "seed=3", "config.lr=0.5", "group=mine")
    assert "2 runs" in done.output
    rows = listed(root)
    assert [(r["algo"], r["seed"], r["config"].get("lr"), r["group"]) for r in (rows["x-one"], rows["y-three"])] == [
        ("ppo", 3, 0.5, "mine"),
        (None, None, None, "y/three"),
    ]
    assert command("label", f"{root}/x/*", "colour=red").exit_code != 0
    assert command("label", f"{root}/x/*", "--remove").exit_code == 0
    assert listed(root)["x-one"]["algo"] is None
    assert {path: path.read_bytes() for path in root.rglob("*.jsonl")} == before


def test_event_files_that_wandb_kept_are_read_with_its_run(tmp_path: Path) -> None:
    folder = tmp_path / "study" / "wandb" / "offline-run-20261123_000000-k3v9x2ab"
    folder.mkdir(parents=True)
    shutil.copy(Path(__file__).parent / "samples" / "run-k3v9x2ab.wandb", folder)
    (alone,) = rollbook.open(tmp_path / "study")
    rows = alone.metrics(["losses/value"]).num_rows
    wild.events(folder / "files", {"extra": [7.0, 8.0, 9.0]})
    (book,) = rollbook.open(tmp_path / "study")
    assert book.series("extra").mean.tolist() == [7.0, 8.0, 9.0]
    assert (book.metrics(["losses/value"]).num_rows, book.name) == (rows, alone.name)


def test_event_files_of_rl_zoo_in_a_tree_of_their_own_are_read_with_its_training(tmp_path: Path) -> None:
    """Names and start fit; where the start does not, they stay runs of their own."""
    root = tmp_path / "study"
    for n, late in ((1, 5), (2, 5), (3, 90_000)):
        start = 1_700_000_000 + 1000 * n
        folder = root / "logs" / "ppo" / f"CartPole-v1_{n}"
        wild.put_evaluations(folder, iter([1.0, 2.0, 3.0]))
        wild.monitor(folder / "0.monitor.csv", [1.0, 2.0], [5, 5], start=start, env="CartPole-v1")
        place = root / "tb" / "CartPole-v1" / f"PPO_{n}"
        wild.events(place, {"train/loss": [7.0, 8.0, 9.0]}, f"events.out.tfevents.{start + late}.host.12.0")
    rows = listed(root)
    assert sorted(rows) == [
        "logs-ppo-CartPole-v1_1",
        "logs-ppo-CartPole-v1_2",
        "logs-ppo-CartPole-v1_3",
        "tb-CartPole-v1-PPO_3",
    ]
    one = rollbook.open(root).one("logs-ppo-CartPole-v1_1")
    assert one.series("train/loss").mean.tolist() == [7.0, 8.0, 9.0]
    assert one.series("test/return").mean.tolist() == [1.0, 2.0, 3.0]


def test_seeds_of_spinning_up_are_one_group_though_addresses_and_folders_differ(tmp_path: Path) -> None:
    from rollbook.runs.grouping import groups_of

    for seed in range(3):
        folder = tmp_path / "data" / "ppo" / f"ppo_s{seed}"
        wild.table(folder / "progress.txt", {"Epoch": [0, 1], "AverageEpRet": [1.0, 2.0]}, "\t")
        said = {
            "env_fn": f"<function <lambda> at 0x7f12ab34cd0{seed}>",
            "logger": {f"<spinup.utils.logx.EpochLogger object at 0x7f99ab34cd0{seed}>": {"output_dir": str(folder)}},
            "logger_kwargs": {"output_dir": str(folder)},
            "exp_name": "ppo",
            "seed": seed,
        }
        (folder / "config.json").write_text(json.dumps(said))
    (group,) = groups_of(rollbook.open(tmp_path / "data").rows(), ["auto"])
    assert len(group.members) == 3


@pytest.mark.parametrize(
    ("table", "axis", "key"),
    [
        ({"Episode": [1, 2, 3], "Steps": [30, 12, 25], "Reward": [1.0, 2.0, 3.0]}, "episode", "train/return"),
        ({"frame": [640, 1280, 1920], "episode_reward": [1.0, 2.0, 3.0]}, "env_step", "train/return"),
        ({"Timestep": [1, 2, 3], "Reward_Mean": [1.0, 2.0, 3.0]}, "env_step", "train/return"),
        ({"epoch": [1, 2, 3], "average-test-episode-return": [1.0, 2.0, 3.0]}, "epoch", "test/return"),
        ({"num episodes": [4, 8, 12], "AvgEpisodeReward": [1.0, 2.0, 3.0]}, "episode", "train/return"),
    ],
)
@pytest.mark.parametrize("name", ["progress.csv", "mine.csv"])
def test_the_axis_of_a_table_never_falls_and_its_return_may_be_spelled_in_any_way(
    name: str, table: dict[str, list[float]], axis: str, key: str, tmp_path: Path
) -> None:
    if name == "progress.csv" and "Reward" in table:
        table = {**{k: v for k, v in table.items() if k != "Reward"}, "EpisodeReward": table["Reward"]}
    wild.table(tmp_path / "study" / "ppo" / name, table)
    (book,) = rollbook.open(tmp_path / "study")
    series = book.series(key)
    assert (series.axis, series.mean.tolist()) == (axis, [1.0, 2.0, 3.0])


def test_a_table_of_results_is_no_training_and_all_such_files_are_named_by_one_command(tmp_path: Path) -> None:
    for n in range(5):
        file = tmp_path / "study" / f"t{n}" / "hyperparameters.csv"
        wild.table(file, {"Run": [1, 2, 3], "episodes": [50, 50, 70], "average_reward": [1.0, 5.0, 2.0]})
    wild.table(tmp_path / "study" / "PPO" / "progress.csv", {"epoch": [1, 2], "AverageEpRet": [1.0, 2.0]})
    runs = rollbook.open(tmp_path / "study")
    assert [row["name"] for row in runs.rows()] == ["PPO"]
    (problem,) = runs.problems
    said = command("ls", tmp_path / "study", "--left-out")
    assert problem.endswith(f"rollbook ls {tmp_path / 'study'} --left-out")
    assert len(said.output.splitlines()) == 5
    assert "it is a table of results" in said.output


def test_monitor_files_of_other_names_in_one_folder_are_trainings_of_their_own(tmp_path: Path) -> None:
    for n, name in enumerate(("monitor_base", "monitor_better")):
        wild.monitor(tmp_path / "study" / "PPO" / f"{name}.csv", [1.0 * n, 2.0], [5, 5])
    (tmp_path / "study" / "PPO2").mkdir()
    (tmp_path / "study" / "PPO2" / "progress.txt").touch()  # begun, and nothing written yet
    rows = listed(tmp_path / "study")
    assert {name for name in rows if "monitor" in name} == {"PPO-monitor_base", "PPO-monitor_better"}
    assert rollbook.open(tmp_path / "study").problems == []


def test_a_folder_has_the_same_runs_by_a_link_and_links_that_lead_out_of_it_are_followed(tmp_path: Path) -> None:
    """As on clusters: results is a link to a large disk, or holds links to folders there."""
    disk = tmp_path / "disk"
    for place in ("ppo/seed_0", "ppo/seed_1", "sac/seed_0"):
        wild.TOOLS["progress"](disk / "study" / place, iter([1.0, 2.0, 3.0]))
    (tmp_path / "results").symlink_to(disk / "study")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "mine").symlink_to(disk / "study")
    (tmp_path / "home" / "again").symlink_to(disk / "study" / "ppo")
    (disk / "study" / "ppo" / "up").symlink_to(disk)
    (disk / "study" / "latest").symlink_to("ppo")
    (disk / "study" / "gone").symlink_to("nowhere")
    expected = {
        "ppo-seed_0": ("ppo", 0, {"level1": "ppo", "level2": "seed_0"}),
        "ppo-seed_1": ("ppo", 1, {"level1": "ppo", "level2": "seed_1"}),
        "sac-seed_0": ("sac", 0, {"level1": "sac", "level2": "seed_0"}),
    }
    for root in (disk / "study", tmp_path / "results"):
        told = {
            name: (row["algo"], row["seed"], {k: v for k, v in row["folder"].items() if k.startswith("level")})
            for name, row in listed(root).items()
        }
        assert told == expected
    (tmp_path / "home" / "again").unlink()
    assert set(listed(tmp_path / "home")) == set(expected)


def test_results_in_files_that_are_not_read_are_named_with_what_to_do(tmp_path: Path) -> None:
    names = ("progress.csv.gz", "results.zip", "scores.xlsx", "eval_results.pkl", "metrics.parquet", "returns.npz")
    for name in (*names, "model.pkl", "episode_000.parquet", "weights.npz", "replay.gz"):
        (tmp_path / name).write_bytes(b"PK\x03\x04 something")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "scores.json").write_text(json.dumps({"Alien": [1.0, 2.0], "Pong-v5": [3.0, 4.0]}))
    shown = command("ls", tmp_path, "--left-out").output
    assert len(rollbook.open(tmp_path)) == 0
    assert all(name in shown for name in (*names, "scores.json"))
    assert not any(name in shown for name in ("model.pkl", "episode_000", "weights", "replay"))
    assert all(words in shown for words in ("gunzip", "unpack it", "save it as CSV", "rollbook scores"))


def test_rows_of_numbers_in_an_archive_of_numpy_are_a_run(tmp_path: Path) -> None:
    np.savez(tmp_path / "results.npz", steps=np.arange(3) * 100, returns=np.array([1.0, 2.0, 3.0]))
    (book,) = rollbook.open(tmp_path)
    found = book.metrics("returns", x="step")
    assert (found["step"].to_pylist(), found["returns"].to_pylist()) == ([0, 100, 200], [1.0, 2.0, 3.0])


def test_a_column_for_each_algorithm_is_a_run_of_each(tmp_path: Path) -> None:
    (tmp_path / "hopper.csv").write_text("step,ppo,sac,td3\n0,1,2,3\n100,2,3,4\n")
    assert sorted((row["algo"], row["name"]) for row in rollbook.open(tmp_path).rows()) == [
        (algo, f"hopper-{algo}") for algo in ("ppo", "sac", "td3")
    ]


def test_what_rollbook_keeps_beside_runs_is_no_file_of_another_tool(tmp_path: Path) -> None:
    """Boards, colours and the bin."""
    for algo in ("ppo", "dqn"):
        for seed in range(2):
            with rollbook.init(
                "p", algo, seed=seed, config={"algo": algo}, dir=tmp_path, sinks=[], keeper="inline"
            ) as run:
                run.log({"test/return": float(seed)}, env_step=1)
    runs = rollbook.open(tmp_path)
    runs.boards.save("mine", ["test/return"])
    keep(runs.rows(), {str(row["id"]): 1 for row in runs.rows()})
    runs.where("name = 'dqn'").remove()
    beside = {file.relative_to(tmp_path).parts for file in tmp_path.rglob("*") if ".rollbook" in file.parts}
    assert {name for parts in beside for name in ("boards.json", "colours.json") if name in parts} == {
        "boards.json",
        "colours.json",
    }
    assert found(tmp_path, stamped(str(tmp_path))) == {}
