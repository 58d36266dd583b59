"""Carts for PufferLib's own PPO on a CPU: what its `train` needs besides a name.

The wheel's advantage kernel needs CUDA's runtime; here it is another one where it is missing.
"""

from __future__ import annotations

from typing import Any

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


def arguments(folder: str) -> dict[str, Any]:
    """PufferLib's arguments for a thousand steps; `folder` gets its checkpoints."""
    return {"env_name": "cartpole", "neptune": False, "wandb": False, "train": {**TRAIN, "data_dir": folder}}


def made(args: dict[str, Any]) -> tuple[Any, Any]:
    """Four carts, and a policy for them."""
    import gymnasium
    import pufferlib.emulation
    import pufferlib.models
    import pufferlib.vector
    from pufferlib import pufferl
    from pufferlib.pufferlib import EpisodeStats

    def cart(buf: Any = None, seed: int = 0) -> Any:
        stats = EpisodeStats(gymnasium.make("CartPole-v1"))
        return pufferlib.emulation.GymnasiumPufferEnv(env=stats, buf=buf)

    if not getattr(pufferl, "_C_AVAILABLE", True):
        pufferl.compute_puff_advantage = advantages_of
    vecenv = pufferlib.vector.make(cart, num_envs=4, backend=pufferlib.vector.Serial, seed=args["train"]["seed"])
    return vecenv, pufferlib.models.Default(vecenv.driver_env, hidden_size=16)
