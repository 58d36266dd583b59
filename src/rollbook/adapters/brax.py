"""Brax and MuJoCo Playground with a rollbook run: the functions that `train` calls.

run = rollbook.init("ant", "ppo", seed=1)
ppo.train(environment, num_timesteps=10_000_000, progress_fn=progress(run), policy_params_fn=checkpoints(run))
run.finish()
"""

from __future__ import annotations

from rollbook.adapters._run import JoinedRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["checkpoints", "progress"]


def progress(
    run: object = None, then: Callable[[int, Any], object] | None = None, *, clock: str = "env_step", **run_options: Any
) -> Callable[[int, Mapping[str, object]], None]:
    """A function for `train(progress_fn=…)`: logs a row under the native keys at each call.

    Args:
      run: a run or a scope of a run. None uses the current run, or opens one.
      then: the program's own `progress_fn`, called afterwards with the same arguments.
      clock: what the first argument counts: environment steps, except in ARS, ES and behaviour cloning.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
    """
    joined = JoinedRun("brax.progress", run, "brax", "train", run_options, host="brax")

    def progress_fn(num_steps: int, metrics: Mapping[str, object]) -> None:
        """Log what Brax measured."""
        joined.keep("progress", "recording progress", lambda: joined.log(dict(metrics), **{clock: int(num_steps)}))
        if then is not None:
            then(num_steps, metrics)

    return progress_fn


def checkpoints(run: object = None, then: Callable[..., object] | None = None) -> Callable[..., None]:
    """A function for `train(policy_params_fn=…)`: saves the policy's parameters as a checkpoint of the run.

    Args:
      run: a run or a scope of a run. None uses the current run.
      then: the program's own `policy_params_fn`, called afterwards with the same arguments.
    """
    joined = JoinedRun("brax.checkpoints", run, "brax", "train", {}, host="brax")

    def policy_params_fn(current_step: int, make_policy: Any, params: Any) -> None:
        """Save the parameters: {path in the tree: array}."""
        joined.keep("checkpoint", "saving parameters", _save, joined, current_step, params)
        if then is not None:
            then(current_step, make_policy, params)

    return policy_params_fn


def _save(joined: JoinedRun, step: int, params: Any) -> None:
    import jax
    import numpy as np

    leaves, _ = jax.tree_util.tree_flatten_with_path(params)
    arrays = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
    joined.run.run.save_checkpoint(arrays, rng=False, through="env_step", env_step=int(step))
