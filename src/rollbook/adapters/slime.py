"""slime with a rollbook run: its two logging functions, for training and evaluation rollouts.

    python train.py ... \\
        --custom-rollout-log-function-path rollbook.adapters.slime.log_rollout_data \\
        --custom-eval-rollout-log-function-path rollbook.adapters.slime.log_eval_rollout_data

Written against THUDM/slime 0d234f3 (slime/ray/rollout.py, slime/utils/types.py, docs/en/get_started/customization.md),
also for miles, a fork of it. slime calls both in the actor that generates; neither imports slime.
"""

from __future__ import annotations

from rollbook.adapters._run import JoinedRun
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

__all__ = ["log_eval_rollout_data", "log_rollout_data"]

_STATUSES = ("completed", "truncated", "aborted", "failed")
_joined: JoinedRun | None = None


def log_rollout_data(
    rollout_id: int, args: Any, samples: Sequence[Any], rollout_extra_metrics: Any, rollout_time: float
) -> bool:
    """Log the samples of one rollout step, and slime's further metrics. slime then logs its own as before.

    Args:
      rollout_id: slime's step; the clock `gradient_step`.
      args: slime's arguments; the configuration of the run.
      samples: `Sample` objects, or lists of them.
      rollout_extra_metrics: numbers, or None.
      rollout_time: seconds.
    Returns:
      False: slime's own logging continues.
    """
    joined = _joined_for(args)
    joined.keep("slime_rollouts", "keeping rollouts", _log, joined, rollout_id, samples, "train")
    joined.keep("slime_metrics", "keeping metrics", _metrics, joined, rollout_id, rollout_extra_metrics, rollout_time)
    return False


def log_eval_rollout_data(rollout_id: int, args: Any, data: Any, extra_metrics: Any) -> bool:
    """Log the samples of an evaluation, as rollouts of mode "eval".

    Args:
      rollout_id: slime's step; the clock `gradient_step`.
      args: slime's arguments; the configuration of the run.
      data: data set -> a dict whose `samples` are `Sample` objects, or lists of them.
      extra_metrics: numbers, or None.
    Returns:
      False: slime's own logging continues.
    """
    joined = _joined_for(args)
    joined.keep("slime_rollouts", "keeping rollouts", _log_held_out, joined, rollout_id, data)
    joined.keep("slime_metrics", "keeping metrics", _metrics, joined, rollout_id, extra_metrics)
    return False


def _joined_for(args: Any) -> JoinedRun:
    """The run of this process: the current one, or one that is opened with slime's names."""
    global _joined
    whole = None if _joined is None or _joined.run is None else _joined.run.run
    if _joined is None or (whole is not None and whole.status != "running"):
        project, name = _named(args, "wandb_project", "slime"), _named(args, "wandb_group", "train")
        seed = _named(args, "seed", None)
        _joined = JoinedRun("rollbook.adapters.slime", None, project, name, {}, seed=seed, host="slime")
        _joined.settings(args, seed)
    return _joined


def _named(args: Any, name: str, default: Any) -> Any:
    """One of slime's arguments, if it is of a plain kind."""
    with tolerating(Exception):
        value = getattr(args, name, None)
        return value if isinstance(value, (str, int)) and value != "" else default
    return default


def _metrics(joined: JoinedRun, step: int, metrics: Any, seconds: Any = None) -> None:
    took = {} if seconds is None else {"time/rollout_seconds": seconds}
    joined.log({**dict(metrics or {}), **took}, gradient_step=step)


def _log_held_out(joined: JoinedRun, step: int, data: Any) -> None:
    for name, held in dict(data).items():
        _log(joined, step, held.get("samples") or (), "eval", str(name))


def _log(joined: JoinedRun, step: int, given: Iterable[Any], mode: str, env: str | None = None) -> None:
    samples = list(_flat(given))
    if not samples:
        return
    rows = [_columns(sample) for sample in samples]
    names = dict.fromkeys(name for row in rows for name in row)
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in names}
    versions = [[int(v) for v in getattr(one, "weight_versions", None) or () if str(v).isdigit()] for one in samples]
    groups = [getattr(sample, "group_index", None) for sample in samples]
    ids = joined.run.run.rollouts.log_many(
        prompts=[sample.prompt for sample in samples],
        completions=[sample.response for sample in samples],
        group=[None if group is None else f"{mode}-{step}-{group}" for group in groups],
        policy_version=([own[0] if own else None for own in versions], [own[-1] if own else None for own in versions]),
        mode=mode,
        env=env,
        batch=str(step),
        gradient_step=int(step),
        **columns,
    )
    removed = [name for name, sample in zip(ids, samples, strict=True) if getattr(sample, "remove_sample", False)]
    if removed:
        joined.run.run.rollouts.dropped(removed, reason="removed", gradient_step=int(step))


def _columns(sample: Any) -> dict[str, Any]:
    """What a sample has, by the names of our columns; what is unknown is left out."""
    tokens, length = list(sample.tokens or ()), int(sample.response_length or 0)
    status = str(getattr(sample.status, "value", sample.status))
    reward = sample.reward
    found = {
        "tokens": tokens[len(tokens) - length :] if tokens else length,
        "logprobs": sample.rollout_log_probs,
        "mask": sample.loss_mask,
        "prompt_tokens": len(tokens) - length if tokens else None,
        "status": status if status in _STATUSES else "failed",
        "seconds/tools": getattr(sample, "non_generation_time", None) or None,
        "episode_id": getattr(sample, "session_id", None) or getattr(sample, "rollout_id", None),
        "label": sample.label if isinstance(sample.label, (str, int, float)) else None,
    }
    if isinstance(reward, dict):
        found |= {f"rewards/{name}": cell for name, cell in reward.items() if isinstance(cell, (int, float))}
    else:
        found["reward"] = reward
    return {name: cell for name, cell in found.items() if cell is not None}


def _flat(samples: Iterable[Any]) -> Iterable[Any]:
    for sample in samples:
        if isinstance(sample, (list, tuple)):
            yield from _flat(sample)
        else:
            yield sample
