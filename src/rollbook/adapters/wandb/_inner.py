"""The modules inside `wandb` that programs use: `wandb.sdk.wandb_run.Run`, `wandb.tensorboard.patch`, ….

Each is created here with the parts that programs use; `import wandb.sdk.data_types.video` also works.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType

from rollbook.adapters.wandb import _data, _state, errors, util
from rollbook.adapters.wandb._api import Api, ApiRun
from rollbook.adapters.wandb._artifacts import Artifact, Manifest, ManifestEntry
from rollbook.adapters.wandb._current import CommError, ConfigError, termlog
from rollbook.adapters.wandb._run import Config, Run, Settings, Summary
from rollbook.adapters.wandb._state import current, init, patch_tensorboard, watch_videos

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class RunDisabled:
    """wandb's run of mode "disabled"; here that is a `Run` as well."""


class ServerResponseError(Exception):
    """wandb's error when its server refuses; never raised here."""


def _no_reports(name: str) -> Any:
    raise AttributeError(f"wandb.apis.reports.{name}: reports lie on wandb's server. Here `rollbook report` writes one")


def _of_sb3(name: str) -> Any:
    if name.startswith("__") or name != "WandbCallback":
        raise AttributeError(f"wandb.integration.sb3 has no {name!r}")
    from rollbook.adapters.wandb._sb3 import WandbCallback

    return WandbCallback


def _of_keras(name: str) -> Any:
    if name not in ("WandbEvalCallback", "WandbMetricsLogger", "WandbModelCheckpoint"):
        raise AttributeError(f"wandb.integration.keras has no {name!r}")
    from rollbook.adapters.wandb import _keras

    return getattr(_keras, name)


def _set(variable: str, value: str, env: Any = None) -> None:
    (os.environ if env is None else env)[variable] = value


def _module(name: str, **names: object) -> ModuleType:
    """The module of that name below `wandb`, set as an attribute of its parent."""
    above, _, last = name.rpartition(".")
    module = ModuleType(f"{__package__}.{name}")
    module.__spec__ = ModuleSpec(module.__name__, None, is_package=True)
    module.__path__ = []  # makes it a package, so that submodules can be imported
    vars(module).update(names)
    sys.modules[module.__name__] = module
    if above:
        setattr(sys.modules[f"{__package__}.{above}"], last, module)
    return module


wandb_run = _module("wandb_run", Run=Run)
env = _module("env", set_project=partial(_set, "WANDB_PROJECT"), set_entity=partial(_set, "WANDB_ENTITY"))
_OF_SDK = ("AlertLevel", "controller", "finish", "init", "login", "require", "setup", "sweep", "teardown")
sdk = _module(
    "sdk",
    Artifact=Artifact,
    Config=Config,
    Settings=Settings,
    Summary=Summary,
    _attach=_state.attached,
    **{name: getattr(_state, name) for name in _OF_SDK},
)
_module("sdk.wandb_run", Run=Run)
_module("sdk.wandb_config", Config=Config)
_module("sdk.wandb_summary", Summary=Summary)
_module("sdk.wandb_settings", Settings=Settings)
_module(
    "sdk.lib", RunDisabled=type("RunDisabled", (), {"__doc__": "wandb's run of mode disabled; here that is a Run."})
)
_module("sdk.lib.config_util", ConfigError=ConfigError)
_module("sdk.lib.runid", generate_id=util.generate_id)
_module("sdk.mailbox")
_module("sdk.mailbox.mailbox_handle", ServerResponseError=ServerResponseError)
_module("sdk.data_types")
_module("sdk.wandb_init", init=init)
_module("sdk.artifacts")
_module("sdk.artifacts.artifact", Artifact=Artifact)
_module("sdk.artifacts.artifact_manifest", ArtifactManifest=Manifest)
_module("sdk.artifacts.artifact_manifest_entry", ArtifactManifestEntry=ManifestEntry)
for _kind in (_data.Video, _data.Image, _data.Histogram, _data.Table, _data.Html):
    _module(f"sdk.data_types.{_kind.__name__.lower()}", util=util, **{_kind.__name__: _kind})
apis = _module("apis")
_module("apis.public", Api=Api, Run=ApiRun, CommError=CommError)
_module("apis.reports", __getattr__=_no_reports)
tensorboard = _module("tensorboard", patch=patch_tensorboard, unpatch=lambda: None)
data_types = _module("data_types", **{name: getattr(_data, name) for name in _data.__all__ if name[0].isupper()})
integration = _module("integration")
_module("integration.sb3", __getattr__=_of_sb3)
_module("integration.keras", __getattr__=_of_keras)
_module("integration.gym", monitor=lambda: watch_videos(current()))
_module("integration.tensorboard", patch=patch_tensorboard)
vars(errors)["__path__"] = []  # a package, too
_module("errors.errors", **{name: getattr(errors, name) for name in errors.__all__})
_module("errors.term", termlog=termlog, termwarn=termlog, termerror=termlog, termsetup=_state.termsetup)
