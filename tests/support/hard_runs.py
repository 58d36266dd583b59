"""One folder of runs that are hard to answer questions about: each is a case that some door once got wrong."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path

import rollbook
from live_copies import copy_live

KEY = "test/return"
_QUIET = {"sinks": [], "rules": (), "keeper": "inline"}


def record(folder: Path) -> None:
    """Write runs into `runs` (projects `lengths`, `study`, `wide`), and folders of three other tools into `foreign`."""
    _foreign(folder / "foreign")
    folder = folder / "runs"
    for seed in range(5):  # five long ones beside five short ones: which leads depends on where they are scored
        _run(folder, "lengths", "long", seed, "a", [float(i) * (3 if i > 200 else 0.1) + seed for i in range(400)])
        _run(folder, "lengths", "short", seed, "b", [i / 4 + seed for i in range(200)])
    _run(folder, "study", "diverged", 0, "a", [1.0, 2.0, math.nan])
    _run(folder, "study", "healthy", 1, "a", [1.0, 2.0, 3.0])
    _run(folder, "study", "one row", 2, "b", [4.0])
    _run(folder, "study", "no row", 3, "b", [])
    _run(folder, "study", "grün's", 4, 'say "grün"', [5.0, 6.0, math.inf, 7.0], lr="1e-3")
    with contextlib.suppress(ZeroDivisionError), _open(folder, "study", "crashed", 5, "a") as run:
        run.log({KEY: 9.0}, env_step=0)
        raise ZeroDivisionError
    with _open(folder, "study", "resumed", 6, "b") as run:
        for step in range(10):
            run.log({KEY: float(step)}, env_step=step)
            if step == 4:
                run.save_checkpoint({"weights": [1.0]})
    with _open(folder, "study", "resumed", 6, "b", resume="must") as run:
        run.restore("last")
        for step in range(5, 8):
            run.log({KEY: 100.0 + step}, env_step=step)
    for file in folder.glob("study/resumed-*/ckpt/*"):
        file.unlink()  # by hand: a checkpoint that its row still names
    with _open(folder, "study", "two clocks", 7, "a") as run:
        for step in range(6):
            run.log({KEY: float(step), "update/loss": 1.0 / (1 + step)}, env_step=10 * step, gradient_step=step)
        _alert(run, "kl", "warn", "moved too far", key="update/loss", env_step=20)
        _alert(run, "kl", "fail", "moved very far", evidence='{"key": "update/loss"}', env_step=30)
        _alert(run, "mine", "note", f"look at {KEY}", gradient_step=3)
    with _open(folder, "study", "rewound", 8, "b") as run:
        for step in range(8):
            run.log({KEY: float(step)}, env_step=step)
        run.rewind(env_step=3)
        run.log({KEY: 50.0}, env_step=4)
    with _open(folder.parent / "elsewhere", "study", "running", 9, "a") as run:
        for step in range(4):
            run.log({KEY: float(step)}, env_step=step)
        run.book.latest()
        # As it is now: this process, its writer, lives on, and what is copied changes no more.
        copy_live(run.folder, folder / "study" / Path(run.folder).name)
    lengths = rollbook.open(folder).where("project = 'lengths'")
    lengths.compare(KEY, by="config.algo", plan="mine", seeds=10)
    with _open(folder, "wide", "many keys", 0, "a") as run:
        for part in range(3):
            run.log(
                {f"part{part}/key{number}": float(number) for number in range(1000)} | {KEY: float(part)}, env_step=part
            )


def _alert(run: rollbook.Run, rule: str, level: str, message: str, **more: object) -> None:
    clocks = {name: more.pop(name) for name in ("env_step", "gradient_step") if name in more}
    run.record("alerts", {"rule": rule, "level": level, "message": message, "source": "rule", **more}, **clocks)


def _open(folder: Path, project: str, name: str, seed: int, algo: str, **more: object) -> rollbook.Run:
    config = {"algo": algo, "seed": seed, "net": {"width": 64}, "lr": more.pop("lr", 0.1)}
    return rollbook.init(project, name, seed=seed, config=config, dir=folder, **_QUIET, **more)  # type: ignore[arg-type]


def _run(folder: Path, project: str, name: str, seed: int, algo: str, values: list[float], **more: object) -> None:
    with _open(folder, project, name, seed, algo, **more) as run:
        if values:
            run.log_many({KEY: values}, env_step=list(range(len(values))))


def _foreign(folder: Path) -> None:
    csv = folder / "ppo" / "seed_0"
    csv.mkdir(parents=True)
    (csv / "progress.csv").write_text("time/total_timesteps,rollout/ep_rew_mean\n10,1.0\n20,2.0\n30,nan\n")
    jsonl = folder / "jsonl"
    jsonl.mkdir()
    rows = [{"step": n, "test/return": float(n)} for n in range(4)]
    (jsonl / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = folder / "vpg" / "seed_1"
    text.mkdir(parents=True)
    (text / "progress.txt").write_text("Epoch\tAverageEpRet\tTotalEnvInteracts\n0\t1.5\t100\n1\t2.5\t200\n")
    (text / "config.json").write_text(json.dumps({"exp_name": "vpg", "seed": 1}))
