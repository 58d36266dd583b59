"""As much of Stable-Baselines3 as the callback touches."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

import numpy as np


class BaseCallback:
    def __init__(self, verbose: int = 0) -> None:
        self.verbose, self.n_calls, self.num_timesteps = verbose, 0, 0
        self.locals: dict[str, Any] = {}
        self.model: Any = None

    @property
    def training_env(self) -> Any:
        return self.model.get_env()

    @property
    def logger(self) -> Any:
        return self.model.logger

    def _nothing(self) -> Any:
        return True

    _init_callback = _on_training_start = _on_rollout_start = _on_step = _on_rollout_end = _on_training_end = _nothing

    def init_callback(self, model: Any) -> None:
        self.model = model
        self._init_callback()

    def on_training_start(self, local: dict[str, Any], outer: dict[str, Any]) -> None:
        self.locals = local
        self.num_timesteps = self.model.num_timesteps
        self._on_training_start()

    def on_rollout_start(self) -> None:
        self._on_rollout_start()

    def on_step(self) -> bool:
        self.n_calls += 1
        self.num_timesteps = self.model.num_timesteps
        return self._on_step()

    def on_rollout_end(self) -> None:
        self._on_rollout_end()

    def on_training_end(self) -> None:
        self._on_training_end()


class EvalCallback(BaseCallback):
    def __init__(self, returns: list[float], best_model_save_path: str | None = None) -> None:
        super().__init__()
        self.best_mean_reward, self.returns, self.best_model_save_path = -np.inf, returns, best_model_save_path

    def _log_success_callback(self, local: dict[str, Any], outer: dict[str, Any]) -> None:
        return

    def evaluate(self) -> None:
        for value in self.returns:
            episode = {"episode": {"r": value, "l": 5, "t": 1.0}}
            for done in (False, True):
                local = {"i": 0, "done": done, "info": episode if done else {}, "is_monitor_wrapped": True}
                self._log_success_callback(local, {})
        self.best_mean_reward = max(self.best_mean_reward, float(np.mean(self.returns)))


class KVWriter:
    def write(self, key_values: Any, key_excluded: Any, step: int = 0) -> None:
        raise NotImplementedError


class SeqWriter:
    def write_sequence(self, sequence: Any) -> None:
        raise NotImplementedError


@dataclass
class Video:
    frames: Any
    fps: float


@dataclass
class Figure:
    figure: Any
    close: bool


@dataclass
class Image:
    image: Any
    dataformats: str


@dataclass
class HParam:
    hparam_dict: Any
    metric_dict: Any


class HostLogger:
    """Upstream's dump, live dicts included."""

    def __init__(self, folder: Any, output_formats: list[Any]) -> None:
        self.output_formats = output_formats
        self.name_to_value: dict[str, Any] = {}
        self.name_to_excluded: dict[str, Any] = {}

    def record(self, key: str, value: Any, exclude: Any = None) -> None:
        self.name_to_value[key] = value
        self.name_to_excluded[key] = (exclude or "",)

    def dump(self, step: int = 0) -> None:
        for output in self.output_formats:
            if isinstance(output, KVWriter):
                output.write(self.name_to_value, self.name_to_excluded, step)
        self.name_to_value.clear()
        self.name_to_excluded.clear()


class Env:
    """One environment whose episodes have three steps of reward 1/3."""

    num_envs = 1

    def __init__(self) -> None:
        self.t = 0
        self.envs = [types.SimpleNamespace(spec=types.SimpleNamespace(id="Three-v0"))]

    def step(self) -> tuple[Any, Any, Any]:
        self.t += 1
        done = self.t % 3 == 0
        info = {"episode": {"r": 1.0, "l": 3, "t": 0.5}, "TimeLimit.truncated": False} if done else {}
        return np.array([1 / 3], dtype=np.float32), np.array([done]), [info]


class PPO:
    """Collects 4 steps, dumps, then trains: in the order of the real one."""

    def __init__(self, learning_rate: Any = 3e-4, gamma: float = 0.9, seed: int | None = None) -> None:
        self.learning_rate, self.gamma, self.seed = learning_rate, gamma, seed
        self.rollout_buffer = object()
        self.num_timesteps = self._n_updates = self._total_timesteps = 0
        self.logger: Any = HostLogger(None, [])
        self._env = Env()
        self.saved: list[str] = []

    def get_env(self) -> Env:
        return self._env

    def save(self, path: Any) -> None:
        with open(f"{path}.zip", "wb") as file:
            file.write(b"model")

    def learn(self, total: int, callback: Any, reset_num_timesteps: bool = True, evaluations: Any = None) -> None:
        if reset_num_timesteps:
            self.num_timesteps = 0
        else:
            total += self.num_timesteps
        self._total_timesteps = total
        callback.init_callback(self)
        callback.on_training_start({"callback": types.SimpleNamespace(callbacks=[callback, evaluations])}, {})
        iteration = 0
        while self.num_timesteps < total:
            callback.on_rollout_start()
            for _ in range(4):
                rewards, dones, infos = self._env.step()
                self.num_timesteps += 1
                callback.locals = {"rewards": rewards, "dones": dones, "infos": infos}
                callback.on_step()
            callback.on_rollout_end()
            iteration += 1
            self.logger.record("time/iterations", iteration)
            self.logger.record("rollout/ep_rew_mean", 1.0)
            self.logger.dump(self.num_timesteps)
            self._n_updates += 10
            self.logger.record("train/approx_kl", np.float32(self._n_updates / 1000))
            self.logger.record("train/custom", self._n_updates)
        callback.locals = {"callback": types.SimpleNamespace(callbacks=[callback, evaluations])}
        callback.on_training_end()


def modules() -> dict[str, types.ModuleType]:
    """What to put into sys.modules."""
    found = {name: types.ModuleType(f"stable_baselines3{name}") for name in ("", ".common", ".common.logger")}
    found |= {name: types.ModuleType(f"stable_baselines3{name}") for name in (".common.callbacks", ".common.monitor")}
    callbacks, logger = found[".common.callbacks"], found[".common.logger"]
    callbacks.BaseCallback, callbacks.EvalCallback = BaseCallback, EvalCallback  # type: ignore[attr-defined]
    for kind in (KVWriter, SeqWriter, Figure, HParam, Image, Video):
        setattr(logger, kind.__name__, kind)
    logger.configure = None  # type: ignore[attr-defined]
    return {f"stable_baselines3{name}": module for name, module in found.items()}
