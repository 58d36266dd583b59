"""Stable-Baselines3's vector environments, without a question to them.

A worker of a `SubprocVecEnv` answers by pickling, and ends if that fails. So its environments are read as this process
holds them, and a worker is asked only if it is a writer of the run: then rollbook is inside, and answers with a text.
"""

from __future__ import annotations

import os
import sys
from functools import wraps

from rollbook.adapters._inside import chain, environment_name, held, named_by_maker
from rollbook.schema.run_files import RunFile, journal_folder
from rollbook.system.files import read_json
from rollbook.system.guard import tolerating
from rollbook.system.liveness import is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from rollbook.run.scope import Scope

    class KeepsReturns(Protocol):
        """A `Monitor`."""

        episode_returns: list[float]


_MAKERS = "_rollbook_env"
"""The attribute of a `SubprocVecEnv` with the name of its environment."""


def vectors(env: object) -> list[Any]:
    """A vector environment and those it wraps, the outermost first."""
    return list(chain(env, "venv"))


def _single(env: object) -> list[Any]:
    """The environments of a vector in this process; [] if they are elsewhere."""
    inside = held(vectors(env)[-1], "envs") if env is not None else None
    return list(inside) if isinstance(inside, (list, tuple)) else []


def environment_of(model: object) -> str | None:
    """The id or the class name of an algorithm's environment, as this process knows it; None if it does not."""
    env = held(model, "env") or _given(model)
    if env is None:
        return None
    single = _single(env)
    if single:
        return environment_name(single[0])
    innermost = vectors(env)[-1]
    name = held(innermost, _MAKERS)
    if name or held(innermost, "remotes") is not None:
        return name if isinstance(name, str) else None
    name = held(held(innermost, "spec"), "id")
    return name if isinstance(name, str) else type(innermost).__name__


def _given(model: Any) -> object:
    with tolerating(Exception):
        return model.get_env()
    return None


def remember_makers() -> None:
    """From now on, remember for each new `SubprocVecEnv` which environment its functions name; see `named_by_maker`."""
    with tolerating(Exception):  # another version, or a fake of it
        from stable_baselines3.common.vec_env import SubprocVecEnv

        original = SubprocVecEnv.__init__
        if hasattr(original, "rollbook"):
            return

        @wraps(original)
        def made(self: Any, env_fns: Any, *args: Any, **kwargs: Any) -> None:
            original(self, env_fns, *args, **kwargs)
            with tolerating(Exception):
                name = named_by_maker(env_fns[0])
                if name is not None:
                    vars(self)[_MAKERS] = name

        made.rollbook = True  # type: ignore[attr-defined]
        SubprocVecEnv.__init__ = made


def find_monitors(env: object) -> list[KeepsReturns | None]:
    """The `Monitor` of each sub-environment in this process, else None; [] if none can be found."""
    return [next(filter(_keeps_returns, chain(single, "env")), None) for single in _single(env)]


def _keeps_returns(env: object) -> bool:
    missing = object()
    return held(env, "results_writer", missing) is not missing and isinstance(held(env, "episode_returns"), list)


def already_recorded(env: object, run: Scope) -> list[bool]:
    """For each sub-environment: whether a `RecordEpisodes` inside it sends its episodes to this run, in any process.

    Args:
      env: a vector environment of Stable-Baselines3.
      run: the run or scope of the callback.
    Returns:
      One answer per sub-environment; [] if no such wrapper is possible.
    """
    if env is None or "gymnasium" not in sys.modules:
        return []
    from rollbook.capture import RecordEpisodes

    nonce = run.run.internals.about.nonce
    single = _single(env)
    if single:
        return [
            any(isinstance(each, RecordEpisodes) and each.recorded_by == nonce for each in chain(one, "env"))
            for one in single
        ]
    base = vectors(env)[-1]
    processes = held(base, "processes")
    if not isinstance(processes, (list, tuple)) or held(base, "remotes") is None:
        return []
    writers = _writing_processes(run.run.folder)
    ours = [i for i, process in enumerate(processes) if getattr(process, "pid", None) in writers]
    answers = [False] * len(processes)
    if ours:
        wrapped = base.env_is_wrapped(RecordEpisodes, indices=ours)
        ours = [i for i, is_wrapped in zip(ours, wrapped, strict=True) if is_wrapped]
    if ours:
        for i, recorded_by in zip(ours, base.get_attr("recorded_by", indices=ours), strict=True):
            answers[i] = recorded_by == nonce
    return answers


def _writing_processes(run: str | os.PathLike[str]) -> set[int]:
    """The processes of this host that have written to the run and still live."""
    found: set[int] = set()
    journal = journal_folder(run)
    with tolerating(OSError):
        for writer in os.listdir(journal):
            about = read_json(os.path.join(journal, writer, RunFile.WRITER))
            if isinstance(about.get("pid"), int) and is_alive(about):
                found.add(about["pid"])
    return found


def reward_source(env: object) -> Any:
    """A function that returns the rewards before normalisation, if a `VecNormalize` changes them."""
    for each in vectors(env):
        if _is(each, "VecNormalize"):
            return getattr(each, "get_original_reward", None)
    return None


def monitors_normalised_returns(env: object) -> bool:
    """Whether a `VecMonitor` wraps a `VecNormalize` that changes rewards, so that its returns are changed, too."""
    outside = False
    for each in vectors(env):
        if outside and _is(each, "VecNormalize") and held(each, "norm_reward", True):
            return True
        outside = outside or _is(each, "VecMonitor")
    return False


def _is(env: object, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(env).__mro__)
