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
from rollbook.adapters.wandb._current import CommError, Error, UsageError, current
from rollbook.adapters.wandb._data import (
    Artifact,
    Audio,
    Graph,
    Histogram,
    Html,
    Image,
    Molecule,
    Object3D,
    Plotly,
    Table,
    Video,
)
from rollbook.adapters.wandb._inner import apis, env, sdk, tensorboard, wandb_run
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
    require,
    restore,
    save,
    setup,
    sweep,
    teardown,
    termerror,
    termlog,
    termwarn,
    unwatch,
    use_artifact,
    use_model,
    watch,
)
from rollbook.ground.lazy import attach
from rollbook.ground.version import __version__

__all__ = [
    "AlertLevel", "Api", "Artifact", "Audio", "CommError", "Config", "Error", "Graph", "Histogram", "Html", "Image",
    "Molecule", "Object3D", "Plotly", "Run", "Settings", "Summary", "Table", "UsageError", "Video", "__version__",
    "agent", "alert", "api", "apis", "config", "controller", "define_metric", "ensure_configured", "env", "errors",
    "finish", "init", "join", "link_model", "log", "log_artifact", "log_code", "log_model", "login",
    "mark_preempting", "plot", "require", "restore", "run", "save", "sdk", "setup", "summary", "sweep", "teardown",
    "tensorboard", "termerror", "termlog", "termwarn", "unwatch", "use_artifact", "use_model", "util", "wandb_run",
    "watch",
]  # fmt: skip


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_attach = _state.attached  # Lightning asks for it

_ABSENT = {
    "ArtifactTTL": "An artifact is a folder of files in the run; delete it when you like",
    "Classes": "Log the labels as a wandb.Table",
    "EvalTable": "Log a wandb.Table",
    "JoinedTable": "Log one wandb.Table",
    "box3d": "Log the boxes as a wandb.Table",
    "plot_table": "Log the wandb.Table itself",
}


def _absent(name: str) -> Any:
    raise AttributeError(f"wandb.{name}: rollbook has no place for it. {_ABSENT[name]}")


__getattr__, __dir__ = attach(
    __name__,
    {},
    made={
        "api": lambda _name: Api(),
        "run": lambda _name: current(),
        "config": lambda _name: _state.current_or_waiting().config,
        "summary": lambda _name: _state.current_or_waiting().summary,
        **dict.fromkeys(_ABSENT, _absent),
    },
    modules=False,
)
