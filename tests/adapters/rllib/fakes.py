"""What Ray hands to callbacks, as far as the adapter looks at it; Ray itself is not installed here."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest


class Hooks:
    """Stands for Ray's base classes, whose hooks do nothing."""


class Metrics:
    """A MetricsLogger that keeps what it was told."""

    def __init__(self) -> None:
        self.said: dict[Any, list[Any]] = {}
        self.reduce: dict[Any, str] = {}

    def log_value(self, key: Any, value: Any, *, reduce: str = "ema", window: int | None = None) -> None:
        self.said.setdefault(key, []).append(value)
        assert self.reduce.setdefault(key, reduce) == reduce


class Single:
    """A SingleAgentEpisode: `add` is one step; `cut` begins a new chunk of the same episode."""

    def __init__(self, id_: str = "e0", t: int = 0) -> None:
        self.id_, self.t, self.t_started = id_, t, t
        self.observations: list[Any] = [float(t)]
        self.actions: list[Any] = []
        self.rewards: list[float] = []
        self.infos: list[dict[str, Any]] = [{}]
        self.extra_model_outputs: dict[str, list[Any]] = {"action_logp": []}
        self.is_terminated = self.is_truncated = False

    def add(self, reward: float = 1.0, info: Any = None, terminated: bool = False, truncated: bool = False) -> None:
        self.t += 1
        self.observations.append(float(self.t))
        self.actions.append(self.t % 2)
        self.rewards.append(reward)
        self.infos.append(info or {})
        self.extra_model_outputs["action_logp"].append(-0.5)
        self.is_terminated, self.is_truncated = terminated, truncated

    @property
    def is_done(self) -> bool:
        return self.is_terminated or self.is_truncated

    def __len__(self) -> int:
        return self.t - self.t_started

    def cut(self) -> Single:
        return Single(self.id_, self.t)

    def get_infos(self, index: int) -> Any:
        return self.infos[index]

    def get_rewards(self, index: int) -> Any:
        return self.rewards[index]

    def get_observations(self, index: int) -> Any:
        return self.observations[index]

    def get_actions(self, index: int) -> Any:
        return self.actions[index]

    def get_extra_model_outputs(self, key: str, index: int) -> Any:
        return self.extra_model_outputs[key][index]


class Several:
    """A MultiAgentEpisode."""

    def __init__(self, *agents: str, id_: str = "m0") -> None:
        self.id_ = id_
        self.agent_episodes = {agent: Single(f"{id_}/{agent}") for agent in agents}
        self.is_terminated = self.is_truncated = False

    @property
    def is_done(self) -> bool:
        return self.is_terminated or self.is_truncated


class EnvRunner:
    """An EnvRunner."""

    def __init__(self, evaluation: bool = False) -> None:
        self.config = types.SimpleNamespace(in_evaluation=evaluation)
        self._weights_seq_no = 1
        self._callbacks: list[Any] = []


class Group:
    """An EnvRunnerGroup whose runners live in this process."""

    def __init__(self, *runners: EnvRunner) -> None:
        self.runners = runners
        self.asked: list[Any] = []

    def foreach_env_runner(
        self,
        func: Any,
        *,
        local_env_runner: bool = True,
        remote_worker_ids: Any = None,
        timeout_seconds: float | None = None,
    ) -> None:
        self.asked.append(remote_worker_ids)
        for runner in self.runners:
            func(runner)


class Algorithm:
    """An Algorithm."""

    def __init__(self, logdir: Path, *runners: EnvRunner, trial: Any = None) -> None:
        self.env_runner_group, self.eval_env_runner_group = Group(*runners), None
        self.config = types.SimpleNamespace(
            env="Plant", enable_env_runner_and_connector_v2=True, to_dict=lambda: {"lr": 0.1}
        )
        self.logdir, self.iteration, self.cleaned = str(logdir), 0, False
        self._storage = trial.storage if trial is not None else None

    def cleanup(self) -> None:
        self.cleaned = True


class Trial:
    """One of Tune's trials."""

    def __init__(self, place: Path, trial_id: str = "t_00000", **config: Any) -> None:
        self.trial_id, self.status = trial_id, "PENDING"
        folder = f"PPO_Plant_{trial_id}_2026-11-20_10-00-00"
        self.storage = types.SimpleNamespace(experiment_dir_name="exp", trial_dir_name=folder)
        self.local_path, self.config = str(place / trial_id), config
        self.checkpoint: Any = None
        self.latest_checkpoint_result: Any = None
        self.last_result: dict[str, Any] = {}
        self.error_file: str | None = None
        self.trainable: type = Hooks

    def get_trainable_cls(self) -> type:
        return self.trainable

    def init_local_path(self) -> None:
        Path(self.local_path).mkdir(parents=True, exist_ok=True)

    def __str__(self) -> str:
        return f"PPO_Plant_{self.trial_id}"


class FunctionTrainable:
    """What Tune wraps a function in."""


class Context:
    """What Tune tells a function about its trial; `storage` is None outside of one."""

    storage: Any = None

    def get_storage(self) -> Any:
        return self.storage


def install(monkeypatch: pytest.MonkeyPatch, version: str | None = "2.60.0") -> Any:
    """Make `import ray` find these classes; returns the adapter's package."""
    homes = {
        "ray.rllib.callbacks.callbacks": ("RLlibCallback", Hooks),
        "ray.tune.logger": ("LoggerCallback", Hooks),
        "ray.tune.trainable": ("FunctionTrainable", FunctionTrainable),
        "ray.tune": ("get_context", Context),
    }
    monkeypatch.setattr(Context, "storage", None)
    for home, (name, stand_in) in homes.items():
        parts = home.split(".")
        for i in range(1, len(parts) + 1):
            path = ".".join(parts[:i])
            if path not in sys.modules:
                monkeypatch.setitem(sys.modules, path, types.ModuleType(path))
        setattr(sys.modules[home], name, stand_in)
    for path in [*sys.modules]:
        if path.startswith("rollbook.adapters.rllib."):
            monkeypatch.delitem(sys.modules, path)
    monkeypatch.setattr("rollbook.adapters._versions.installed", lambda _name: version)
    from rollbook.adapters import rllib

    return rllib


def info(speed: float | None = None, parts: int | None = None, **media: Any) -> dict[str, Any]:
    """An info as environments return it."""
    data: dict[str, Any] = {}
    if speed is not None:
        data["running"] = {"speed": speed}
    if parts is not None:
        data["final"] = {"parts": parts}
    return {"data": data, "media": media}
