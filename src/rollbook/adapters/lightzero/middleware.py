"""For DI-engine's middleware pipelines: a logger as one more middleware.

task.use(online_logger(run))            # instead of: task.use(ding.framework.middleware.online_logger())
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollbook.adapters.lightzero.experiment import experiment_of
from rollbook.system.bill import counted
from rollbook.values import scalar_of

_SKIPPED = ("priority", "td_error_priority")


def online_logger(
    run: object = None, record_train_iter: bool = False, train_show_freq: int = 100
) -> Callable[[object], None]:
    """A middleware that logs what training and evaluation put into the context.

    The book has every iteration; the event file one in `train_show_freq`. Tags are DI-engine's: `basic/train_<key>` and
    `basic/eval_episode_return_mean`, with the suffixes `-env_step` and `-train_iter` if `record_train_iter`; a
    "[histogram]" has only its name.

    Args:
      run: a Run or an Experiment. None uses the current run, or opens one.
      record_train_iter: write each value at both steps.
      train_show_freq: iterations between events.
    """
    experiment = experiment_of(run)
    # Iterations that the middleware has logged: to the event file, and at all.
    last_shown, last_seen = -1, -1

    def look(ctx: Any) -> None:
        nonlocal last_shown, last_seen
        clocks = {"env_step": int(ctx.env_step), "gradient_step": int(ctx.train_iter)}
        # DI-engine's evaluator starts with an infinite value: no evaluation has been made yet.
        value = scalar_of(ctx.get("eval_value")) if hasattr(ctx, "get") else scalar_of(getattr(ctx, "eval_value", None))
        if value is not None and value not in (float("inf"), float("-inf")):
            _write({"eval_episode_return_mean": value}, clocks)
        # The context keeps the output of the last training until the next one.
        output = ctx.get("train_output") if hasattr(ctx, "get") else getattr(ctx, "train_output", None)
        if output is None or ctx.train_iter == last_seen:
            return
        last_seen = ctx.train_iter
        outputs = [output] if isinstance(output, Mapping) else list(output)
        if not outputs:
            return
        show = ctx.train_iter - last_shown >= train_show_freq
        if show:
            last_shown = ctx.train_iter
        values = _values(outputs[-1], clocks, show)
        _write(values, clocks, to_events=show)

    def _values(output: Mapping[str, object], clocks: Mapping[str, int], show: bool) -> dict[str, object]:
        values: dict[str, object] = {}
        for key, value in output.items():
            name = key.rpartition("]")[2]
            if key in _SKIPPED:
                continue
            if "[scalars]" in key and isinstance(value, Mapping):
                values.update((f"train_{name}/{part}", number) for part, number in value.items())
            elif "[histogram]" in key:
                if show:
                    experiment.events.histogram(name, value, **clocks)
                else:
                    experiment.run.log_histogram(name, value, **clocks)
            else:
                values[f"train_{name}"] = value
        return values

    def _write(values: Mapping[str, object], clocks: Mapping[str, int], to_events: bool = True) -> None:
        experiment.run.log({f"basic/{name}": value for name, value in values.items()}, **clocks)
        numbers = {name: scalar_of(value) for name, value in values.items()}
        known = {f"basic/{name}": number for name, number in numbers.items() if number is not None}
        if not known or not to_events:
            return
        if record_train_iter:
            experiment.events.write(
                [
                    ({f"{tag}-env_step": number for tag, number in known.items()}, clocks["env_step"]),
                    ({f"{tag}-train_iter": number for tag, number in known.items()}, clocks["gradient_step"]),
                ]
            )
        else:
            experiment.events.write([(known, clocks["env_step"])])

    def log(ctx: object) -> None:
        with counted(experiment.run.count, "lightzero_middleware", "an iteration could not be kept"):
            look(ctx)

    return log
