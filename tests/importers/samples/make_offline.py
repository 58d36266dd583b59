"""Writes small samples with the tools themselves, one function each, without what they say of the machine.

python make_offline.py FOLDER       the versions are in README.md beside this file
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import zipfile
from pathlib import Path

root = Path(sys.argv[1]).resolve()
root.mkdir(parents=True, exist_ok=True)
os.chdir(root)
os.environ["CLEARML_CACHE_DIR"] = str(root / "cache")


def optuna() -> None:
    import optuna as tool
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    def trial(one: tool.Trial) -> float:
        one.suggest_float("lr", 1e-5, 1e-2, log=True)
        size = one.suggest_int("net.size", 1, 8)
        one.suggest_categorical("act", ["relu", "tanh", None])
        one.set_user_attr("seed", one.number)
        for n in range(4):
            value = float("nan") if (one.number, n) == (1, 2) else float("inf") if (one.number, n) == (1, 3) else n / 2
            one.report(value, 100 * n)
        if one.number == 2:
            raise tool.TrialPruned
        if one.number == 3:
            raise RuntimeError("broken")
        return size * 1.5

    (root / "optuna").mkdir()
    for storage in ("sqlite:///study.db", JournalStorage(JournalFileBackend("optuna/journal.log"))):
        study = tool.create_study(
            storage=storage, study_name="ppo", direction="maximize", sampler=tool.samplers.RandomSampler(1)
        )
        study.set_user_attr("env", "CartPole-v1")
        study.enqueue_trial({"lr": 1e-3})
        study.optimize(trial, n_trials=4, catch=(RuntimeError,))
        study.ask()
        study.enqueue_trial({"lr": 1e-4})
        study.add_trial(
            tool.trial.create_trial(
                params={"lr": 0.5},
                distributions={"lr": tool.distributions.FloatDistribution(1e-5, 1, log=True)},
                value=float("-inf"),
                intermediate_values={7: 0.25},
            )
        )
        two = tool.create_study(storage=storage, study_name="two", directions=["maximize", "minimize"])
        two.set_metric_names(["return", "cost"])
        two.optimize(lambda one: (one.suggest_float("x", 0, 1), 2.0), n_trials=1)
        known = {
            f"{each.study_name}-{one.number}": {
                "state": one.state.name,
                "params": one.params,
                "values": one.values,
                "reported": list(one.intermediate_values.items()),
                "attributes": one.user_attrs,
            }
            for each in (study, two)
            for one in each.trials
        }
        name = "database" if isinstance(storage, str) else "journal"
        (root / "optuna" / f"{name}.said.json").write_text(json.dumps(known, indent=1))
    with sqlite3.connect("study.db") as made:
        (root / "optuna.sql").write_text("\n".join(made.iterdump()) + "\n")


def dvclive() -> None:
    from dvclive import Live

    with Live("dvclive", save_dvc_exp=False, dvcyaml=None) as live:
        live.log_params({"lr": 3e-4, "seed": 1, "net": {"size": 8}})
        for n in range(12):
            live.log_metric("train/loss", float("nan") if n == 3 else 1 / (n + 1))
            live.log_metric("return", float(n), timestamp=True)
            live.next_step()
        live.log_metric("end", 5.0, plot=False)


def comet() -> None:
    import comet_ml as tool

    run = tool.OfflineExperiment(
        project_name="study", workspace="me", offline_directory="cache", log_code=False, log_env_details=False
    )
    run.set_name("ppo-1")
    run.log_parameters({"lr": 3e-4, "seed": 1, "net": {"size": 8}})
    run.add_tags(["a", "b"])
    run.log_other("note", "hello")
    for n in range(12):
        run.log_metric("loss", float("nan") if n == 3 else 1 / (n + 1), step=n, epoch=n // 4)
        run.log_metrics({"return": float(n)}, step=128 * n)
    run.log_text("a text", step=3)
    run.end()
    (whole,) = Path("cache").glob("*.zip")
    with zipfile.ZipFile(whole) as held, zipfile.ZipFile("comet.zip", "w", zipfile.ZIP_DEFLATED) as kept:
        kept.writestr("experiment.json", held.read("experiment.json"))
        messages = held.read("messages.json").decode().splitlines(keepends=True)
        wanted = ("parameter_msg", "metric_msg", "log_other", "file_upload", "log_dependency")
        kept.writestr(
            "messages.json",
            "".join(line for line in messages if json.loads(line)["type"] in wanted and str(root) not in line),
        )


def clearml() -> None:
    from clearml import Task

    Task.set_offline(True)
    run = Task.init("study", "ppo-1", tags=["a"], auto_resource_monitoring=False, auto_connect_streams=False)
    run.connect({"lr": 3e-4, "seed": 1, "net": {"size": 8}})
    for n in range(12):
        run.get_logger().report_scalar("train", "loss", 1 / (n + 1), n)
        run.get_logger().report_scalar("return", "mean", float(n), 128 * n)
    run.get_logger().report_single_value("best", 3.0)
    run.get_logger().report_histogram("actions", "counts", [1, 2, 3], iteration=1)
    run.close()
    (whole,) = Path("cache").rglob("offline-*.zip")
    with zipfile.ZipFile(whole) as held, zipfile.ZipFile("clearml.zip", "w", zipfile.ZIP_DEFLATED) as kept:
        about = json.loads(held.read("task.json"))
        kept.writestr("task.json", json.dumps({**about, "script": {}, "offline_folder": ""}))
        kept.writestr("metrics.jsonl", held.read("metrics.jsonl"))


for write in (optuna, dvclive, comet, clearml) if len(sys.argv) < 3 else (globals()[sys.argv[2]],):
    write()
