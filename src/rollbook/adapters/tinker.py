"""The Tinker cookbook with a rollbook run: one more logger in its multiplexer, and its rollouts as they are made.

    ml_logger = tinker_cookbook.utils.ml_log.setup_logging(log_dir, config=config)
    rollbook.adapters.tinker.join(ml_logger)

Written against tinker-cookbook 0.6.1 (tinker_cookbook/utils/ml_log.py: `Logger`, `MultiplexLogger`;
tinker_cookbook/rl/types.py: `TrajectoryGroup`, with its `rollout_errors`).
"""

from __future__ import annotations

from rollbook.adapters._run import JoinedRun, harmless
from rollbook.errors import BadInput
from rollbook.values import flatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

__all__ = ["RollbookLogger", "join", "log_groups"]

_LIMITS = frozenset(
    ("length", "max_turns", "max_tokens", "max_sampled_tokens", "max_tool_calls", "context_overflow", "rollout_timeout")
)
"""Stop reasons of the sampler and of `StopReason` that cut a trajectory short."""


class RollbookLogger:
    """The methods of the cookbook's `Logger`; writes to a run.

    Args:
      run: a run or a scope of a run. None uses the current run, or opens one.
      project, name: of a run that is opened here.
      run_options: further arguments of `rollbook.init`.
    """

    store = None

    def __init__(
        self, run: object = None, *, project: str = "tinker", name: str = "train", **run_options: object
    ) -> None:
        self._joined = JoinedRun("RollbookLogger", run, project, name, run_options, host="tinker")
        self.run = self._joined.run

    @harmless
    def log_hparams(self, config: Any) -> None:
        """Add to the configuration of the run.

        Args:
          config: a dict, or an object with plain attributes.
        """
        settings = config if hasattr(config, "keys") else _attributes(config)
        self._joined.keep("config", "keeping the configuration", self._joined.settings, settings)

    @harmless
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Log one row under the native keys; `step` is also the clock `gradient_step`.

        Args:
          metrics: native key -> number; nested dicts are joined with "/".
          step: the iteration. None: the clocks keep their readings.
        """
        self._joined.log(dict(flatten(metrics)), step=step, gradient_step=step)

    def enable_event_steps(self) -> None:
        """Nothing to do: rows of a run come in any order."""

    @harmless
    def log_metrics_event(
        self, metrics: Mapping[str, Any], step: int, step_metric: str, metric_axes: dict[str, str] | None = None
    ) -> None:
        """Log a row that belongs to an earlier step.

        Args:
          metrics: native key -> number; nested dicts are joined with "/".
          step: the earlier step; the clock `step`.
          step_metric: the key under which `step` is kept in the row, too.
          metric_axes: not used; every key can be drawn over every clock.
        """
        self._joined.log({**dict(flatten(metrics)), step_metric: step}, step=step)

    @harmless
    def log_summary(self, metrics: Mapping[str, Any]) -> None:
        """Replace values of the run's summary.

        Args:
          metrics: name -> value.
        """
        if self.run is not None:
            self._joined.keep("summary", "keeping the summary", self.run.run.summary.update, dict(metrics))

    def log_long_text(self, key: str, text: str) -> None:
        """Store a text.

        Args:
          key: the key.
          text: the text, of any length.
        """
        if self.run is not None:
            self.run.log_text(key, text)

    def sync(self) -> None:
        """Nothing to do: what was logged is safe."""

    def get_logger_url(self) -> str | None:
        """None: the run is a folder."""
        return None

    def close(self) -> None:
        """Finish the run if it was opened here."""
        self._joined.finish()


def join(ml_logger: Any, run: object = None, **options: Any) -> RollbookLogger:
    """Add a rollbook run to the loggers of a `MultiplexLogger`.

    Args:
      ml_logger: what `setup_logging` returned.
      run, options: see `RollbookLogger`.
    Raises:
      BadInput: `ml_logger` has no list of loggers.
    """
    if not isinstance(getattr(ml_logger, "loggers", None), list):
        raise BadInput(
            f"join({type(ml_logger).__name__}): it has no list `loggers`. Pass the MultiplexLogger that "
            "tinker_cookbook.utils.ml_log.setup_logging() returned"
        )
    own = RollbookLogger(run, **options)
    ml_logger.loggers.append(own)
    return own


def log_groups(
    groups: Sequence[Any],
    *,
    iteration: int,
    decode: Callable[[Sequence[int]], str] | None = None,
    policy_version: int | None = None,
    mode: str = "train",
    run: Any = None,
) -> list[list[str]]:
    """Log trajectory groups as rollouts: a turn for each action, and one for each observation after the first. Each of
    the group's `rollout_errors` is a failed rollout.

    Args:
      groups: `TrajectoryGroup` objects: `trajectories_G` with `transitions` (`ob`, `ac`, `reward`, `metrics`, `logs`),
        and `get_total_rewards()`.
      iteration: the clock `gradient_step`.
      decode: makes a text of token ids, such as a tokenizer's `decode`; without it, only the tokens are kept.
      policy_version: of the sampling client; default: the iteration.
      mode: a word for the rollouts' column of that name, such as "train" or "eval".
      run: a run or a scope of a run; None: the current one.
    Returns:
      The ids of the trajectories, a list for each group, for `run.rollouts.trained` and `dropped`.
    """
    joined = JoinedRun("log_groups", run, "tinker", "train", {}, user=log_groups, host="tinker")
    found: list[list[str]] = [[] for _group in groups]
    if joined.run is not None:
        version = iteration if policy_version is None else policy_version
        for number, group in enumerate(groups):
            arguments = (joined, group, f"{mode}-{iteration}-{number}", iteration, version, mode, decode, found[number])
            joined.keep("tinker_rollouts", "keeping rollouts", _group, *arguments)
    return found


def _group(
    joined: JoinedRun, group: Any, name: str, iteration: int, version: int, mode: str, decode: Any, ids: list[str]
) -> None:
    """Log the trajectories of a group as rollouts; their ids are appended to `ids`."""
    conversations, prompts, prompt_tokens, stops = [], [], [], []
    for trajectory in group.trajectories_G:
        prompt, turns = _turns(trajectory, decode)
        conversations.append(turns)
        prompts.append(decode(prompt) if decode and prompt is not None else None)
        prompt_tokens.append(len(prompt or ()))
        stops.append(_word(getattr(trajectory, "stop_reason", None)) or (turns[-1]["finish_reason"] if turns else None))
    more: dict[str, list[Any]] = {"rewards/final": list(group.final_rewards_G)}
    for number, metrics in enumerate(getattr(group, "metrics_G", None) or ()):
        for key, value in metrics.items():
            more.setdefault(f"metrics/{key}", [None] * len(conversations))[number] = value
    ids += joined.run.run.rollouts.log_many(
        prompts=prompts,
        completions=conversations,
        reward=list(group.get_total_rewards()),
        group=name,
        policy_version=version,
        mode=mode,
        prompt_tokens=prompt_tokens,
        gradient_step=iteration,
        stop_reason=stops,
        status=["truncated" if stop in _LIMITS else "completed" for stop in stops],
        **more,
    )
    errors = [f"{error.error_type}: {error.error_message}" for error in getattr(group, "rollout_errors", None) or ()]
    if errors:
        joined.run.run.rollouts.log_many(
            completions=[[] for _error in errors],
            group=name,
            policy_version=version,
            mode=mode,
            status="failed",
            error=errors,
            gradient_step=iteration,
        )


def _turns(trajectory: Any, decode: Any) -> tuple[list[int] | None, list[dict[str, Any]]]:
    """(the tokens of the prompt, the turns after it) of a trajectory."""
    import numpy as np

    turns: list[dict[str, Any]] = []
    seen: list[int] = []
    prompt = None
    for step in trajectory.transitions:
        # Each observation is the whole conversation so far: only what is new in it is a turn.
        observed = _ids(step.ob)
        fresh = observed[len(seen) :] if observed[: len(seen)] == seen else observed
        if prompt is None:
            prompt = fresh
        elif fresh:
            turns.append({"role": "user", "content": decode(fresh) if decode else None, "tokens": len(fresh)})
        sampled = list(step.ac.tokens)
        logprobs = step.ac.maybe_logprobs
        turns.append(
            {
                "role": "assistant",
                "content": decode(sampled) if decode else None,
                "tokens": np.asarray(sampled, np.int32),
                "logprobs": None if logprobs is None else np.asarray(logprobs, np.float32),
                "reward": step.reward,
                "finish_reason": _word(getattr(step.ac, "stop_reason", None)),
                **{f"metrics/{key}": value for key, value in (step.metrics or {}).items()},
                **{f"logs/{key}": value for key, value in (getattr(step, "logs", None) or {}).items()},
            }
        )
        seen = observed + sampled
    return prompt, turns


def _word(value: Any) -> str | None:
    """A reason as text; the cookbook's are texts or members of an enum of texts."""
    return None if value is None else str(getattr(value, "value", value))


def _ids(observation: Any) -> list[int]:
    """The token ids of an observation (`ModelInput`), without what is no token."""
    to_ints = getattr(observation, "to_ints", None)
    return list(to_ints()) if to_ints is not None else []


def _attributes(config: Any) -> dict[str, Any]:
    found = getattr(config, "__dict__", None) or {
        name: getattr(config, name) for name in getattr(config, "__annotations__", {})
    }
    return {str(name): value for name, value in found.items() if not str(name).startswith("_")}
