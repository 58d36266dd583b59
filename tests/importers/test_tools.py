"""What opens of each tool's folder, in one table: two algorithms, two seeds each, in the tool's own layout."""

# ruff: noqa: E501  (a table: one tool a line)

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rollbook
import wild
from cases import some_of
from rollbook.cli.app import app
from rollbook.formats.importers._paths import read_path

X = [0, 10, 20]
Write = Callable[[Path, str, str, int, list[float]], None]
"""Writes one run below a root: algorithm, environment, seed, returns."""


def events(path: str, tag: str, config: str = "", text: str = "") -> Write:
    def write(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
        words = {"algo": algo, "env": env, "seed": seed}
        wild.events(root / path.format(**words), {tag: returns})
        if config:
            file = root / config.format(**words)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.format(**words))

    return write


def rows(path: str, columns: str, config: str = "", text: str = "", sep: str = ",") -> Write:
    """A table: `columns` names its x-axes and, last, its return."""

    def write(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
        words = {"algo": algo, "env": env, "seed": seed}
        *axes, key = columns.split("|")
        wild.table(root / path.format(**words), {**dict.fromkeys(axes, X), key: returns}, sep)
        if config:
            file = root / config.format(**words)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.format(**words))

    return write


def lines(path: str, axis: str, key: str, config: str = "", text: str = "") -> Write:
    def write(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
        words = {"algo": algo, "env": env, "seed": seed}
        file = root / path.format(**words)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{json.dumps({axis: x, key: r})}\n" for x, r in zip(X, returns, strict=True)))
        if config:
            (root / config.format(**words)).write_text(text.format(**words))

    return write


def whole(path: str, content: Callable[[list[float]], str]) -> Write:
    def write(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
        file = root / path.format(algo=algo, env=env, seed=seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content(returns))

    return write


def td3(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    (root / "results").mkdir(parents=True, exist_ok=True)
    np.save(root / "results" / f"{algo.upper()}_{env}_{seed}.npy", np.array(returns))


def zoo(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    folder = root / "logs" / algo / f"{env}_{seed + 1}"
    (folder / env).mkdir(parents=True)
    np.savez(folder / "evaluations.npz", timesteps=np.array(X), results=np.array(returns)[:, None])
    wild.monitor(folder / "0.monitor.csv", [1.0, 2.0, 3.0], [5, 5, 5], env=env)
    (folder / env / "args.yml").write_text(f"algo: {algo}\nenv: {env}\nseed: {seed}\n")


def monitors(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    wild.monitor(root / f"{algo}_s{seed}" / "monitor.csv", returns, [10, 10, 10], env=env)


def d3rlpy(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    folder = root / "d3rlpy_logs" / f"{algo}_{env}_s{seed}_20261128120000"
    folder.mkdir(parents=True)
    (folder / "params.json").write_text('{"gamma": 0.99}')
    (folder / "time_step.csv").write_text("")
    (folder / "evaluation.csv").write_text(
        "".join(f"{n},{x},{r}\n" for n, (x, r) in enumerate(zip(X, returns, strict=True)))
    )


def sacred(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    run = root / "sacred" / str(10 * (algo == "sac") + seed + 1)
    run.mkdir(parents=True)
    stamps = [f"2026-11-28T20:00:0{n}" for n in range(3)]
    about = {"experiment": {"name": algo}, "status": "COMPLETED", "start_time": stamps[0], "stop_time": stamps[2]}
    series = {"return_mean": {"steps": X, "timestamps": stamps, "values": returns}}
    config = {"seed": seed, "name": algo, "algo": algo, "env": env}
    for name, content in (("run", about), ("config", config), ("metrics", series)):
        (run / f"{name}.json").write_text(json.dumps(content))


def mlflow(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    run = root / "mlruns" / "1" / f"{algo}{seed}".encode().hex().ljust(32, "0")
    for part in ("metrics", "params", "tags"):
        (run / part).mkdir(parents=True)
    (run / "meta.yaml").write_text(f"run_id: {run.name}\nrun_name: {algo}-{seed}\nstatus: 3\nlifecycle_stage: active\n")
    for name, value in (("algo", algo), ("env", env), ("seed", seed)):
        (run / "params" / name).write_text(str(value))
    (run / "metrics" / "episode_reward_mean").write_text(
        "".join(f"1700000000000 {r} {x}\n" for x, r in zip(X, returns, strict=True))
    )


def acme(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    table = {"actor_steps": X, "episode_return": returns}
    wild.table(root / algo / env / f"s{seed}" / "logs" / "evaluator" / "logs.csv", table)


def torchrl(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    folder = root / f"{algo}_{env}_seed{seed}"
    (folder / "scalars").mkdir(parents=True)
    (folder / "texts").mkdir()
    (folder / "texts" / "hparams0.txt").write_text(f"seed: {seed}\nenv: {env}\n")
    (folder / "scalars" / "episode_reward.csv").write_text(
        "".join(f"{x},{r}\n" for x, r in zip(X, returns, strict=True))
    )


def tf_agents(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    for stage in ("train", "eval"):
        wild.events(root / algo / env / str(f"seed_{seed}") / stage, {"Metrics/AverageReturn": returns})


def onpolicy(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    logs = root / "StarCraft2" / env / {"ppo": "mappo", "sac": "hatrpo"}[algo] / "check" / f"run{seed + 1}" / "logs"
    wild.events(logs, {})
    for tag in ("average_episode_rewards", "value_loss"):
        wild.events(logs / tag / tag, {tag: returns})


def marl(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    file = root / "metrics.json"
    known: Any = json.loads(file.read_text()) if file.exists() else {}
    steps = {
        f"step_{n}": {"step_count": x, "mean_episode_return": [r]}
        for n, (x, r) in enumerate(zip(X, returns, strict=True))
    }
    known.setdefault(env, {}).setdefault("easy", {}).setdefault(algo, {})[f"seed_{seed}"] = steps
    root.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(known))


def long(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    with open(root / "all.csv", "a") as file:
        if not file.tell():
            file.write("algo,env,seed,step,episode_reward\n")
        file.writelines(f"{algo},{env},{seed},{x},{r}\n" for x, r in zip(X, returns, strict=True))


def dreamer_scores(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    file = root / "scores" / f"{env}-{algo}.json.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(gzip.decompress(file.read_bytes())) if file.exists() else []
    known.append({"task": env, "method": algo, "seed": seed, "xs": X, "ys": returns})
    file.write_bytes(gzip.compress(json.dumps(known).encode()))


def listed(root: Path, algo: str, env: str, seed: int, returns: list[float]) -> None:
    file = root / env / f"seed_{seed}" / "results.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(file.read_text()) if file.exists() else []
    known += [{"env_step": x, "rew": r, "rew_std": 0.5, "agent": algo} for x, r in zip(X, returns, strict=True)]
    file.write_text(json.dumps(known))


JSON = '{{"seed": {seed}, "env": "{env}", "algo": "{algo}"}}'
YAML = "seed: {seed}\nenv_name: {env}\nalgo: {algo}\n"

TOOLS: dict[str, tuple[Write, str]] = {
    # what is found: N(ame) S(eed) A(lgorithm) E(nvironment) C(onfiguration) X R(eturn) G(rouped)
    "SB3, TensorBoard": (events("tb/{env}_s{seed}/{algo}_1", "rollout/ep_rew_mean"), "NSAE-XRG"),
    "SB3, progress.csv": (rows("{algo}/{env}/seed_{seed}/progress.csv", "time/total_timesteps|rollout/ep_rew_mean"), "NSAE-XRG"),
    "SB3, Monitor": (monitors, "NSAE-XRG"),
    "RL Zoo": (zoo, "NSAECXRG"),
    "Spinning Up": (rows("data/{algo}/{algo}_s{seed}/progress.txt", "Epoch|TotalEnvInteracts|AverageEpRet",
                         "data/{algo}/{algo}_s{seed}/config.json", '{{"exp_name": "{algo}", "seed": {seed}, "env_name": "{env}"}}', "\t"), "NSAECXRG"),
    "baselines": (rows("{env}-{algo}-s{seed}/progress.csv", "misc/total_timesteps|eprewmean"), "NSAE-XRG"),
    "rllab, garage": (rows("{algo}/s{seed}/progress.csv", "TotalEnvSteps|Evaluation/AverageReturn", "{algo}/s{seed}/variant.json", JSON), "NSAECXRG"),
    "rlkit": (rows("{algo}/run_{seed}/progress.csv", "Epoch|evaluation/Average Returns", "{algo}/run_{seed}/variant.json", JSON), "NSAECXRG"),
    "RLlib": (lines("{algo}_{env}_{seed}/result.json", "timesteps_total", "episode_reward_mean", "{algo}_{env}_{seed}/params.json", JSON), "NSAECXRG"),
    "d3rlpy": (d3rlpy, "NSAECXRG"),
    "CleanRL": (events("runs/{env}__{algo}__{seed}__1700000000", "charts/episodic_return"), "NSAECXRG"),
    "CS 285, TensorBoard": (events("data/q2_{algo}_{env}_s{seed}_28-11-2026_12-00-00", "Eval_AverageReturn"), "NSAE-XRG"),
    "CS 285, log.txt": (rows("data/{algo}_{env}_28-11-2026/{seed}/log.txt", "Iteration|AverageReturn", "data/{algo}_{env}_28-11-2026/{seed}/params.json", JSON, "\t"), "NSAECXRG"),
    "ML-Agents": (events("results/{algo}_{seed}/Walker", "Environment/Cumulative Reward", "results/{algo}_{seed}/configuration.yaml",
                         "behaviors: {{Walker: {{trainer_type: {algo}}}}}\nenv_settings: {{seed: {seed}}}\n"), "NSA-CXRG"),
    "rsl_rl, legged_gym": (events("logs/{env}/2026-11-28_12-00-0{seed}_{algo}_seed{seed}", "Train/mean_reward"), "NSAE-XRG"),
    "rl_games": (events("runs/{algo}_{seed}/summaries", "rewards/step", "runs/{algo}_{seed}/config.yaml", YAML), "NSAECXRG"),
    "Sample Factory": (events("train_dir/{algo}_{seed}/.summary/0", "reward/reward", "train_dir/{algo}_{seed}/config.json", JSON), "NSAECXRG"),
    "on-policy (MAPPO)": (onpolicy, "N-AE-XRG"),
    "Sacred, PyMARL": (sacred, "NSAECXRG"),
    "MLflow": (mlflow, "NSAECXRG"),
    "Tianshou": (events("log/{env}/{algo}/{seed}/261128-120000", "test/reward"), "N-AE-XRG"),
    "TF-Agents": (tf_agents, "NSAE-XRG"),
    "Dopamine": (events("{algo}/{env}/seed{seed}/tb", "Eval/AverageReturns"), "NSAE-XRG"),
    "DrQ": (rows("exp/{algo}_{env}_seed={seed}/eval.csv", "step|episode_reward"), "NSAE-XRG"),
    "jaxrl": (events("{env}/{algo}/tb/s{seed}", "evaluation/return"), "NSAE-XRG"),
    "Coach": (rows("{algo}/{env}_s{seed}/worker.csv", "Total steps|Evaluation Reward"), "NSAE-XRG"),
    "TorchBeast": (rows("{env}-{algo}-seed{seed}/logs.csv", "# _tick|step|mean_episode_return"), "NSAE-XRG"),
    "PFRL": (rows("{algo}/{env}/seed{seed}/scores.txt", "steps|episodes|elapsed|mean", sep="\t"), "NSAE-XRG"),
    "keras-rl": (whole("{algo}_{env}_s{seed}/log.json", lambda r: json.dumps({"episode": X, "episode_reward": r})), "NSAE-XRG"),
    "gym's Monitor": (whole("{algo}/{env}/seed_{seed}/openaigym.episode_batch.0.7.stats.json", lambda r: json.dumps(
        {"timestamps": [1.6e9, 1.6e9 + 1, 1.6e9 + 2], "episode_lengths": [5, 5, 5], "episode_rewards": r})), "NSAE-XRG"),
    "TD3's .npy": (td3, "N-AE-XRG"),
    "Acme": (acme, "NSAE-XRG"),
    "TorchRL, CSV": (torchrl, "NSAECXRG"),
    "marl-eval": (marl, "NSAECXRG"),
    "Dreamer": (lines("{env}/{algo}/seed{seed}/metrics.jsonl", "step", "episode/score", "{env}/{algo}/seed{seed}/config.yaml", YAML), "NSAECXRG"),
    "Hydra": (rows("outputs/2026-11-28/12-0{seed}-00-{algo}/metrics.csv", "step|episode_reward", "outputs/2026-11-28/12-0{seed}-00-{algo}/.hydra/config.yaml", YAML), "NSAECXRG"),
    "TensorBoard, downloaded": (whole("run-{algo}_{env}_s{seed}-tag-rollout_ep_rew_mean.csv", lambda r: "Wall time,Step,Value\n" + "".join(
        f"{1.7e9 + x},{x},{v}\n" for x, v in zip(X, r, strict=True))), "NSAE-XRG"),
    "a table for each run": (rows("{algo}_{env}_seed{seed}.csv", "episode|reward_sum|total_reward"), "NSAE-XRG"),
    "one table of all": (long, "NSAE-XRG"),
    "ML-Agents, any seed": (events("results/{algo}_{seed}/Walker", "Environment/Cumulative Reward", "results/{algo}_{seed}/configuration.yaml",
                                   "behaviors: {{Walker: {{trainer_type: {algo}}}}}\nenv_settings: {{seed: -1}}\n"), "N-A-CXRG"),
    "RLlib, 2018": (rows("{algo}_{env}_{seed}_env={env},seed={seed}_2018-08-21_02-43-095_QyA9/progress.csv", "timesteps_total|episode_reward_mean"), "NSAE-XRG"),
    "PPO-PyTorch": (rows("PPO_logs/{env}/s{seed}/{algo}_{env}_log.csv", "timestep|reward"), "NSAE-XRG"),
    "TD-MPC2": (rows("results/{algo}/{env}_seed{seed}.csv", "step|reward"), "NSAE-XRG"),
    "curiosity": (rows("{algo}_{env}_s{seed}/progress.csv", "tcount|eprew"), "NSAE-XRG"),
    "homework, Total_Reward": (rows("logs/{algo}_{env}_seed{seed}.csv", "Episode|Total_Reward"), "NSAE-XRG"),
    "homework, lists": (whole("results/{env}/seed_{seed}/{algo}_metrics.json", lambda r: json.dumps(
        {"timesteps": X, "rewards": r, "lengths": [10, 10, 10]})), "NSAE-XRG"),
    "Dreamer, scores": (dreamer_scores, "NSAE-XRG"),
    "Tianshou, results.json": (listed, "NSAE-XRG"),
}  # fmt: skip


def found_of(root: Path, envs: set[str]) -> str:
    """Which of the letters hold for the four runs of a folder."""
    runs = rollbook.open(root)
    rows_ = runs.rows()
    assert len(rows_) == 4, [row["name"] for row in rows_]
    letters = {
        "N": len({row["name"] for row in rows_}) == 4,
        "S": [row["seed"] for row in rows_].count(0) == 2 and [row["seed"] for row in rows_].count(1) == 2,
        "A": sorted(str(row["algo"]).lower() for row in rows_)[::2]
        in (["ppo", "sac"], ["hatrpo", "mappo"], ["td3", "td3"]),
        "E": {row["env"] for row in rows_} <= envs and None not in {row["env"] for row in rows_},
        "C": all(any(f"config.{name}" not in row["from_path"] for name in row["config"]) for row in rows_),
    }
    reads = [
        book.series(name)
        for book in runs
        for name in ("test/return", "train/return")
        if name in {*book.canonical(), *book.keys()}
    ]
    letters["X"] = all(len(one.x) == 3 and bool(np.all(np.diff(one.x) > 0)) for one in reads)
    letters["R"] = len(reads) >= 4
    by = "algo" if letters["A"] else "group"
    metric = next(
        name for name in ("test/return", "train/return") for book in runs if name in {*book.canonical(), *book.keys()}
    )
    done = CliRunner().invoke(app, ["compare", str(root), "--by", by, "-m", metric, "--json"])
    groups = runs.compare(metric, by=by).groups if done.exit_code == 0 else ()
    letters["G"] = sorted(len(group.names) for group in groups) == [2, 2]
    return "".join(letter if holds else "-" for letter, holds in letters.items())


@pytest.mark.parametrize("tool", some_of(TOOLS, [*TOOLS][::3].count))
def test_of_each_tools_folder_a_person_sees_every_run_and_can_group_them(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write, expected = TOOLS[tool]
    for algo, level in (("ppo", 1.0), ("sac", 300.0)):
        for seed in (0, 1):
            write(tmp_path / "study", algo, "Hopper-v4", seed, [level, level + 1.5, level + 2.5 + seed])
    assert found_of(tmp_path / "study", {"Hopper-v4"}) == expected


def test_the_docs_say_what_opens_of_each_tool() -> None:
    text = (Path(__file__).parents[2] / "docs" / "importers.md").read_text(encoding="utf-8")
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    told = {row[0]: "".join("x" if cell == "yes" else "-" for cell in row[1:]) for row in cells if len(row) == 9}
    assert {tool: told.get(tool) for tool in TOOLS} == {
        tool: "".join("-" if letter == "-" else "x" for letter in letters) for tool, (_write, letters) in TOOLS.items()
    }


@pytest.mark.parametrize(
    ("folders", "env"),
    [
        (["tdmpc2", "cheetah-run-back"], "cheetah-run-back"),
        (["dreamerv3", "cartpole-balance-sparse"], "cartpole-balance-sparse"),
        (["sac", "mw-pick-place-wall"], "mw-pick-place-wall"),
        (["curves", "dmc_ball_in_cup_catch_s3"], "ball_in_cup_catch"),
        (["Ant", "TD3_Ant-v1_0"], "Ant-v1"),
        (["drq_walker_run_1"], "walker_run"),
    ],
)
def test_two_tasks_never_get_the_name_of_one(folders: list[str], env: str) -> None:
    assert read_path(folders).env == env


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"episode": [0, 1, 2], "reward": [1.0, 2.0, 3.0]}, "episode_reward"),
        ({"episode": [40, 80, 120], "timestep": [800, 1600, 2400], "reward": [1.0, 2.0, 3.0]}, "mean_reward"),
        ({"step": [0, 1000, 2000], "reward": [1.0, 2.0, 3.0], "reward_std": [0.1, 0.1, 0.1]}, "mean_reward"),
        ({"step": [0, 1, 2], "reward": [1.0, 2.0, 3.0]}, "reward"),
        ({"step": [0, 1, 2], "episode": [0, 0, 0], "reward": [1.0, 2.0, 3.0]}, "reward"),
        ({"step": [0, 10, 20], "loss": [1.0, 2.0, 3.0], "reward": [1.0, 2.0, 3.0]}, "reward"),
        ({"episode": [0, 1, 2], "reward": [1.0, 2.0, 3.0], "total_reward": [1.0, 2.0, 3.0]}, "reward"),
    ],
)
def test_a_reward_is_a_return_only_where_a_row_is_not_a_step(
    table: dict[str, list[float]], key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wild.table(tmp_path / "mine" / "ppo_log.csv", table)
    (book,) = rollbook.open(tmp_path / "mine")
    assert book.series(key).mean.tolist() == [1.0, 2.0, 3.0]
    assert ("train/return" in book.canonical()) == (key != "reward" or "total_reward" in table)


def test_the_returns_of_a_table_called_eval_are_of_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wild.table(tmp_path / "walker-run" / "1" / "eval.csv", {"step": [0, 10, 20], "episode_reward": [1.0, 2.0, 3.0]})
    (book,) = rollbook.open(tmp_path)
    assert book.series("test/return").mean.tolist() == [1.0, 2.0, 3.0]
    assert "train/return" not in book.canonical()
