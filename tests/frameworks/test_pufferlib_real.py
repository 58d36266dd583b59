"""PufferLib's own PPO on a CPU (the package pufferlib-core): every number of its logs is in the book.

The wheel's advantage kernel needs CUDA's runtime. It is the only function that is another one here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rollbook

GROUPS = ("puffer",)

pytest.importorskip("pufferlib")

TRAIN: dict[str, Any] = {
    "torch_deterministic": True, "seed": 3, "batch_size": "auto", "bptt_horizon": 16, "minibatch_size": 64,
    "max_minibatch_size": 64, "device": "cpu", "cpu_offload": False, "use_rnn": False, "update_epochs": 1,
    "compile": False, "compile_mode": "default", "compile_fullgraph": False, "optimizer": "adam", "learning_rate": 0.01,
    "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_eps": 1e-8, "anneal_lr": True, "precision": "float32",
    "total_timesteps": 1024, "checkpoint_interval": 200, "gamma": 0.99, "gae_lambda": 0.95, "clip_coef": 0.2,
    "vf_coef": 0.5, "vf_clip_coef": 0.2, "ent_coef": 0.01, "max_grad_norm": 0.5, "prio_alpha": 0.8, "prio_beta0": 0.2,
    "vtrace_rho_clip": 1.0, "vtrace_c_clip": 1.0,
}  # fmt: skip


def advantages_of(
    values: Any, rewards: Any, terminals: Any, ratio: Any, advantages: Any, gamma: float, gae_lambda: float,
    vtrace_rho_clip: float, vtrace_c_clip: float,
) -> Any:  # fmt: skip
    """V-trace advantages of [segments, time], by torch."""
    last = 0.0
    for t in reversed(range(values.shape[1] - 1)):
        going_on = 1.0 - terminals[:, t + 1]
        rho, c = ratio[:, t].clamp(max=vtrace_rho_clip), ratio[:, t].clamp(max=vtrace_c_clip)
        delta = rho * (rewards[:, t + 1] + gamma * values[:, t + 1] * going_on - values[:, t])
        last = delta + gamma * gae_lambda * c * last * going_on
        advantages[:, t] = last
    return advantages


@pytest.mark.core
@pytest.mark.timeout(180)
def test_every_row_that_pufferlib_logs_is_in_the_book(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gymnasium
    import pufferlib.emulation
    import pufferlib.models
    import pufferlib.vector
    from pufferlib import pufferl
    from pufferlib.pufferlib import EpisodeStats

    from rollbook.adapters.pufferlib import RollbookLogger

    def cart(buf: Any = None, seed: int = 0) -> Any:
        stats = EpisodeStats(gymnasium.make("CartPole-v1"))
        return pufferlib.emulation.GymnasiumPufferEnv(env=stats, buf=buf)

    if not getattr(pufferl, "_C_AVAILABLE", True):
        monkeypatch.setattr(pufferl, "compute_puff_advantage", advantages_of)
    vecenv = pufferlib.vector.make(cart, num_envs=4, backend=pufferlib.vector.Serial, seed=3)
    policy = pufferlib.models.Default(vecenv.driver_env, hidden_size=16)
    train = {**TRAIN, "data_dir": str(own_place / "experiments")}
    args: dict[str, Any] = {"env_name": "cartpole", "neptune": False, "wandb": False, "train": train}
    given: list[tuple[dict[str, Any], int]] = []

    class Watching(RollbookLogger):
        """The logger, and a copy of what it is called with."""

        def log(self, logs: Any, step: int) -> None:
            given.append((dict(logs), step))
            super().log(logs, step)

    returned = pufferl.train("cartpole", args, vecenv, policy, Watching(config=args, project="carts"))
    (book,) = rollbook.open("runs")
    assert (book.project, book.name, book.seed, book.status) == ("carts", "cartpole", 3, "finished")
    assert returned
    assert all(any(logs == dict(kept) for kept, _step in given) for logs in returned)
    compared = 0
    for key in {key for logs, _step in given for key, value in logs.items() if key != "epoch"}:
        wanted = [(step, float(logs[key])) for logs, step in given if key in logs]
        series = book.series(key, x="env_step")
        assert list(zip(series.x.tolist(), series.mean.tolist(), strict=True)) == wanted, key
        compared += len(wanted)
    assert compared > 10  # it logs by the clock: a fast machine has fewer rows
    assert book.series("losses/policy_loss", x="epoch").x.tolist()[-1] == given[-1][0]["epoch"]
    assert [Path(row["path"]).suffix for row in book.checkpoints().to_pylist()] == [".pt"]
    assert book.problems() == []
