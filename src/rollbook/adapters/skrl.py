"""skrl with a rollbook run: one line between the agent and its trainer.

    agent = PPO(...)
    attach(agent, project="pendulum", seed=1)
    SequentialTrainer(cfg=cfg, env=env, agents=agent).train()

Works with single- and multi-agent agents of skrl's torch, jax and warp back ends. The event files are written as
before.
"""

from __future__ import annotations

import os

from rollbook.adapters._run import JoinedRun, Recorded, lies_beside
from rollbook.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["attach"]


def attach(agent: Any, run: object = None, **run_options: Any) -> Any:
    """Record what an agent writes: a row each time it writes its tracking data, and its checkpoints.

    Args:
      agent: an agent of skrl, before or after its trainer is made.
      run: a run or a scope of a run. None uses the current run, or opens one.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
        Defaults of `project` and `name`: the last two parts of the agent's experiment folder.
    Returns:
      The run. A run opened here ends with the last step of its trainer.
    Raises:
      BadInput: `agent` is not an agent of skrl 2, or `run` has another type.
    """
    if not callable(getattr(agent, "write_tracking_data", None)) or not hasattr(agent, "experiment_dir"):
        raise BadInput(
            f"attach({type(agent).__name__}): found no write_tracking_data and experiment_dir. "
            "Pass an agent of skrl 2, such as PPO(...)"
        )
    parent, name = os.path.split(os.path.abspath(agent.experiment_dir))
    joined = JoinedRun(
        "attach",
        run,
        os.path.basename(parent),
        name,
        run_options,
        host="skrl",
        subject=agent,
        algorithm=type(agent).__name__,
    )
    lies_beside(joined.run, agent, "experiment_dir")
    joined.settings({"agent": getattr(agent, "cfg", None), "algorithm": type(agent).__name__})
    write, save = agent.write_tracking_data, agent.write_checkpoint

    def write_tracking_data(*, timestep: int, timesteps: int) -> None:
        """Log the row, then let the agent write it, which clears the data."""
        joined.go_on()  # an evaluation after the training
        joined.keep("tracking_data", "recording tracking data", _log, joined, agent, timestep)
        with Recorded():
            write(timestep=timestep, timesteps=timesteps)

    def write_checkpoint(*, timestep: int, timesteps: int) -> None:
        """Let the agent save, then register the saved file."""
        save(timestep=timestep, timesteps=timesteps)
        joined.keep("checkpoint", "registering checkpoints", register, timestep)

    def register(timestep: int) -> None:
        folder = os.path.join(agent.experiment_dir, "checkpoints")
        for part in ("agent", *getattr(agent, "checkpoint_modules", ())):
            for ending in ("pt", "pickle"):  # of torch, of jax
                joined.checkpoint(os.path.join(folder, f"{part}_{timestep}.{ending}"), step=timestep)

    agent.write_tracking_data, agent.write_checkpoint = write_tracking_data, write_checkpoint
    if (interacted := getattr(agent, "post_interaction", None)) is not None:

        def post_interaction(*, timestep: int, timesteps: int) -> None:
            """Let the agent learn; after the last step, finish a run that was opened here."""
            interacted(timestep=timestep, timesteps=timesteps)
            if timestep >= timesteps - 1:
                joined.finish()

        agent.post_interaction = post_interaction
    return joined.run


def _log(joined: JoinedRun, agent: Any, timestep: int) -> None:
    row: dict[str, object] = {}
    for key, numbers in agent.tracking_data.items():
        if len(numbers):
            ends = min if key.endswith("(min)") else max if key.endswith("(max)") else _mean
            row[key] = float(ends([float(number) for number in numbers]))
    environments = getattr(getattr(agent, "memory", None), "num_envs", None)
    joined.log(row, step=timestep, env_step=timestep * environments if isinstance(environments, int) else None)


def _mean(numbers: list[float]) -> float:
    import numpy as np  # sums in pairs, as skrl does

    return float(np.mean(numbers))
