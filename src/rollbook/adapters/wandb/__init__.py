"""A module with the interface of `wandb`: programs that log to Weights & Biases record with rollbook, unchanged.

    import rollbook.wandb as wandb                   # instead of: import wandb

    wandb.init(project="cartpole", config={"lr": 3e-4, "seed": 1})
    wandb.log({"charts/episodic_return": 21.0, "global_step": 128})
    wandb.finish()

Without changing the program: `rollbook run train.py --wandb replace`. Names, arguments and meaning follow wandb
0.31; docs/adapters/wandb.md lists the differences. Nothing is uploaded: a run is a local rollbook folder.
"""

from __future__ import annotations

from rollbook.adapters.wandb import _state, errors, plot, util
from rollbook.adapters.wandb._api import Api
from rollbook.adapters.wandb._artifacts import Artifact, ArtifactTTL
from rollbook.adapters.wandb._current import CommError, Error, UsageError, current
from rollbook.adapters.wandb._data import (
    Audio,
    Classes,
    EvalTable,
    Graph,
    Histogram,
    Html,
    Image,
    JoinedTable,
    Molecule,
    Object3D,
    Plotly,
    Table,
    Video,
)
from rollbook.adapters.wandb._inner import apis, data_types, env, integration, sdk, tensorboard, wandb_run
from rollbook.adapters.wandb._run import Config, Run, Settings, Summary
from rollbook.adapters.wandb._state import (
    AlertLevel,
    agent,
    alert,
    controller,
    define_metric,
    ensure_configured,
    finish,
    init,
    join,
    link_model,
    log,
    log_artifact,
    log_code,
    log_model,
    login,
    mark_preempting,
    patched,
    require,
    restore,
    save,
    setup,
    sweep,
    teardown,
    termerror,
    termlog,
    termsetup,
    termwarn,
    unwatch,
    use_artifact,
    use_model,
    watch,
)
from rollbook.adapters.wandb.plot import plot_table
from rollbook.system.lazy import attach

__all__ = [
    "AlertLevel", "Api", "Artifact", "ArtifactTTL", "Audio", "Classes", "CommError", "Config", "Error", "EvalTable",
    "Graph", "Histogram", "Html", "Image", "JoinedTable", "Molecule", "Object3D", "Plotly", "Run", "Settings",
    "Summary", "Table", "UsageError", "Video", "__version__", "agent", "alert", "api", "apis", "box3d", "config",
    "controller", "data_types", "define_metric", "ensure_configured", "env", "errors", "finish", "init", "integration",
    "join", "link_model", "log", "log_artifact", "log_code", "log_model", "login", "mark_preempting", "patched", "plot",
    "plot_table", "require", "restore", "run", "save", "sdk", "setup", "summary", "sweep", "teardown", "tensorboard",
    "termerror", "termlog", "termsetup", "termwarn", "unwatch", "use_artifact", "use_model", "util", "wandb_run",
    "watch",
]  # fmt: skip

__version__ = "0.31.0"
"""The version of wandb whose names and arguments are here: programs ask for it."""

_attach = _state.attached  # Lightning asks for it


def box3d(**parts: object) -> dict[str, object]:
    """A box of an `Object3D`, as a dict. Arguments as in `wandb.box3d`."""
    return parts


__getattr__, __dir__ = attach(
    __name__,
    {},
    made={
        "api": lambda _name: Api(),
        "run": lambda _name: current(),
        "config": lambda _name: _state.current_or_waiting().config,
        "summary": lambda _name: _state.current_or_waiting().summary,
    },
    modules=False,
)
