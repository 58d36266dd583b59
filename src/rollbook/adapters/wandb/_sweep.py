"""Sweeps in one process: `wandb.sweep` stores the search space, `wandb.agent` calls a function for each trial.

The methods are grid and random; bayes samples at random and reports that. Each trial is a run; all are in one group.
"""

from __future__ import annotations

import itertools
import math
import random

from rollbook.system.guard import is_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

_INTERRUPTED = 130
"""The exit code of Ctrl-C in a shell."""

_sweeps: dict[str, tuple[Mapping[str, Any], str | None]] = {}


def new_sweep(about: Mapping[str, Any], project: str | None) -> str:
    """The id of a new sweep.

    Raises:
      UsageError: a method or parameter is not supported.
    """
    from rollbook.adapters.wandb._current import UsageError, termlog
    from rollbook.adapters.wandb.util import generate_id

    method = about.get("method", "random")
    if method not in ("grid", "random", "bayes"):
        raise UsageError(f"wandb.sweep(method={method!r}): there are grid, random and bayes")
    if method == "bayes":
        termlog("a sweep by bayes draws at random here")
    next(_trials(about, seed=0), None)  # raises if something cannot be searched
    sweep_id = generate_id()
    _sweeps[sweep_id] = (about, project or about.get("project"))
    return sweep_id


def run_agent(sweep_id: str, function: Callable[[], object] | None, count: int | None) -> None:
    """Call `function` once per trial; the `wandb.init` inside gets the trial's settings.

    Raises:
      UsageError: no such sweep, or no function: a sweep of programs needs a service.
    """
    from rollbook.adapters.wandb._current import Trial, UsageError, runs, termlog

    name = sweep_id.rpartition("/")[2]
    if name not in _sweeps:
        raise UsageError(f"wandb.agent({sweep_id!r}): no such sweep in this process. There are: {sorted(_sweeps)}")
    if function is None:
        raise UsageError("wandb.agent(): pass the function that trains; rollbook starts no other programs")
    about, project = _sweeps[name]
    most = count if count is not None else about.get("run_cap")
    for settings in itertools.islice(_trials(about), most):
        failed = 0
        with Trial(name, settings, project):
            try:
                function()
            except Exception as err:  # a failed trial is a crashed run; continue with the next
                failed = 1
                if is_foreign(err):
                    raise
                termlog(f"a trial of sweep {name} ended by {type(err).__name__}: {err}")
            except KeyboardInterrupt:
                failed = _INTERRUPTED
                raise
            except SystemExit as err:
                failed = err.code if isinstance(err.code, int) else int(err.code is not None)
                raise
            except BaseException:
                failed = 1
                raise
            finally:
                for run in runs():
                    run.finish(failed)


def _trials(about: Mapping[str, Any], seed: int | None = None) -> Iterator[dict[str, Any]]:
    """The settings of each trial: all points of a grid, or random ones without end."""
    parameters: Mapping[str, Any] = about.get("parameters", {})
    if about.get("method") == "grid":
        names = list(parameters)
        for values in itertools.product(*(_all_of(name, parameters[name]) for name in names)):
            yield dict(zip(names, values, strict=True))
        return
    source = random.Random(seed) if seed is not None else random.Random(random.SystemRandom().random())
    while True:
        yield {name: _drawn(name, parameter, source) for name, parameter in parameters.items()}


def _all_of(name: str, parameter: Any) -> list[Any]:
    from rollbook.adapters.wandb._current import UsageError

    if not isinstance(parameter, dict):
        return [parameter]
    if "values" in parameter:
        return list(parameter["values"])
    if "value" in parameter:
        return [parameter["value"]]
    if isinstance(parameter.get("min"), int) and isinstance(parameter.get("max"), int):
        return list(range(parameter["min"], parameter["max"] + 1))
    raise UsageError(
        f"wandb.sweep: the parameter {name!r} of a grid needs value, values, or whole min and max; it has {parameter!r}"
    )


def _drawn(name: str, parameter: Any, source: random.Random) -> Any:
    """Sample one value; the distributions have wandb's names."""
    from rollbook.adapters.wandb._current import UsageError

    if not isinstance(parameter, dict):
        return parameter
    if "value" in parameter:
        return parameter["value"]
    if "values" in parameter:
        weights = parameter.get("probabilities")
        return (
            source.choices(list(parameter["values"]), weights)[0]
            if weights
            else source.choice(list(parameter["values"]))
        )
    if "parameters" in parameter:
        return {inner: _drawn(inner, about, source) for inner, about in parameter["parameters"].items()}
    low, high, mean, spread = (
        parameter.get("min"),
        parameter.get("max"),
        parameter.get("mu", 0.0),
        parameter.get("sigma", 1.0),
    )
    # Without a distribution, as in wandb: an integer between integers, else uniform.
    whole = isinstance(low, int) and isinstance(high, int)
    form = parameter.get("distribution", "int_uniform" if whole else "uniform")
    if form in ("normal", "q_normal"):
        number = source.gauss(mean, spread)
    elif form in ("log_normal", "q_log_normal"):
        number = math.exp(source.gauss(mean, spread))
    elif low is None or high is None:
        raise UsageError(
            f"wandb.sweep: the parameter {name!r} needs value, values, or min and max; it has {parameter!r}"
        )
    elif form == "int_uniform":
        return source.randint(int(low), int(high))
    elif form in ("uniform", "q_uniform"):
        number = source.uniform(low, high)
    elif form in ("log_uniform_values", "q_log_uniform_values"):
        number = math.exp(source.uniform(math.log(low), math.log(high)))
    elif form in ("log_uniform", "q_log_uniform"):
        number = math.exp(source.uniform(low, high))
    else:
        raise UsageError(f"wandb.sweep: the parameter {name!r} has the distribution {form!r}, which is not known here")
    step = parameter.get("q", 1) if form.startswith("q_") else None
    return round(number / step) * step if step else number
