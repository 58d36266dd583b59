"""The importers by name. A new one is one file and one line here.

Another package offers one as an entry point in the group `rollbook.importers`, named like the format and pointing
at its class. Nothing is imported before it is used.
"""

from __future__ import annotations

from pathlib import Path

from rollbook.errors import BadInput
from rollbook.system.registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from rollbook.protocols import Importer

GROUP = "rollbook.importers"

_IMPORTERS = {
    "wandb": "wandb:Wandb",
    "mlflow": "mlflow:MLflow",
    "optuna": "optuna:Optuna",
    "dvclive": "dvclive:DvcLive",
    "comet": "comet:Comet",
    "clearml": "clearml:ClearML",
    "trackio": "trackio:Trackio",
    "swanlab": "swanlab:SwanLab",
    "goodseed": "goodseed:GoodSeed",
    "aim": "aim:Aim",
    "neptune": "neptune:Neptune",
    "sacred": "sacred:Sacred",
    "ml_agents": "ml_agents:MLAgents",
    "marl_eval": "marl_eval:MarlEval",
    "scalar_files": "scalar_files:ScalarFiles",
    "acme": "acme:Acme",
    "sb3": "sb3:StableBaselines3",
    "trl": "trl:TrlCompletions",
    "verl_rollouts": "verl_rollouts:VerlRollouts",
    "tinker": "tinker:Tinker",
    "prime_rl": "prime_rl:PrimeRL",
    "nemo_rl": "nemo_rl:NemoRL",
    "slime": "slime:Slime",
    "scores": "scores:Scores",
    "jsonl": "jsonl:JsonLines",
    "csv": "csv:Csv",
    "tensorboard": "tensorboard:TensorBoard",
    "trainer_state": "trainer_state:TrainerState",
    "printed": "printed:Printed",
}
"""If two formats describe one run, the one listed first here is read."""

_REGISTRY = Registry("importer", "rollbook.formats.importers", _IMPORTERS, GROUP)


names, summary = _REGISTRY.names, _REGISTRY.summary


def make(name: str, **options: object) -> Importer:
    """The importer of that name.

    Args:
      name: one of `names()`.
      options: those of the importer.
    Raises:
      UnknownOption: no importer has that name, or it has no such option.
      BadInput: an option has an unusable value.
    """
    importer: Importer = _REGISTRY.make(name, options)
    return importer


def choose(path: str | os.PathLike[str]) -> str:
    """The name of the importer for the files at `path`.

    Args:
      path: a file or a folder.
    Raises:
      BadInput: nothing is there; no importer reads it, or several do.
    """
    given = Path(path)
    if not given.exists():
        raise BadInput(f"import {given}: there is no such file or folder")
    found = {name: importer for name in names() if (importer := make(name)).finds(given)}
    also = {inner for importer in found.values() for inner in getattr(importer, "includes", ())}
    fitting = [name for name in found if name not in also]
    fitting = [name for name in fitting if not getattr(found[name], "is_last_resort", False)] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise BadInput(f"import {given}: no importer reads what is there.", f"There are: {', '.join(names())}")
    raise BadInput(f"import {given}: {' and '.join(fitting)} read what is there.", f"Say which: format={fitting[0]!r}")


def patterns() -> dict[str, tuple[str, ...]]:
    """The file name patterns of each importer, in the order of the list; see `protocols.Importer`."""
    order = [*_IMPORTERS, *(name for name in names() if name not in _IMPORTERS)]
    known = {name: tuple(getattr(_REGISTRY.load(name), "files", ())) for name in order}
    return {name: globs for name, globs in known.items() if globs}


def looks_into(name: str) -> tuple[str, ...]:
    """Endings of file names, such as ".csv", that the importer looks into whatever they are called."""
    return tuple(getattr(_REGISTRY.load(name), "looks_into", ()))


def what(name: str) -> str:
    """What a run of that format is called in a list: "W&B offline run".

    Args:
      name: one of `names()`.
    """
    return str(getattr(_REGISTRY.load(name), "what", name))
