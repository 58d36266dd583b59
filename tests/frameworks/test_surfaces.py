"""Every public name, method and argument of the loggers that ours stand in for; what is missing is listed, with why."""

from __future__ import annotations

import os
import sys
import types
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rollbook import adapters

sys.path.insert(0, str(Path(__file__).parent))

from surfaces import lacking_in_module, public_names

GROUPS = ("main", "acme", "spinningup")

SB3 = "stable_baselines3.common"
ACME = "acme.utils"
TIANSHOU = "tianshou.utils"

_OTHER_TOOLS = "no part of its loggers"
_PLACES = "Tianshou 1 and 2 have other orders: told apart by their types (test_tianshou_logger.py)"
_OF_BASE = {
    "BaseLogger(training_interval, by position)": "the first place; train_interval is its older name",
    "BaseLogger(save_interval, by position)": _PLACES,
    "BaseLogger(exclude_arrays, by position)": _PLACES,
    "BaseLogger.save_data(update_step, by position)": "the third place; gradient_step is its older name",
    "LazyLogger.save_data(update_step, by position)": "the third place",
    "LazyLogger.prepare_dict_for_logging(data=)": "called log_data, as in its base class",
    "TensorboardLogger.save_data(update_step, by position)": "the third place",
}

SURFACES: dict[str, tuple[str, dict[str, str]]] = {
    f"{ACME}.loggers": ("acme", {}),
    **{
        f"{ACME}.loggers.{name}": (f"acme.{name}", {})
        for name in (
            *("aggregators", "asynchronous", "auto_close", "base", "constant", "csv", "dataframe", "default"),
            *("filters", "flatten", "terminal", "timestamp"),
        )
    },
    f"{ACME}.counting": ("acme.counting", {}),
    f"{ACME}.paths": (
        "acme.paths",
        {"ACME_ID": "the flag is read where Acme defined it", "FLAGS": "absl's", "rmdir": _OTHER_TOOLS},
    ),
    f"{TIANSHOU}.logger.logger_base": (
        "tianshou.base",
        {
            **_OF_BASE,
            "VALID_LOG_VALS": "a tuple of types for annotations",
            "VALID_LOG_VALS_TYPE": "the same as a union",
            "TRestoredData": "an alias for annotations",
        },
    ),
    TIANSHOU: (
        "tianshou",
        {
            **_OF_BASE,
            "WandbLogger": "sinks=['wandb'] sends a run there",
            **dict.fromkeys(("DummyTqdm", "MovAvg", "RunningMeanStd", "deprecation", "tqdm_config"), _OTHER_TOOLS),
            **dict.fromkeys(("logger", "net", "statistics", "warning"), "modules of its package"),
        },
    ),
    "spinup.utils.logx": ("spinningup", {}),
    "spinup.utils.serialization_utils": ("spinningup.serialization", {}),
    "spinup.utils.mpi_tools": (
        "spinningup.statistics",
        dict.fromkeys(
            ("mpi_fork", "msg", "allreduce", "broadcast", "mpi_op", "mpi_sum", "mpi_avg"),
            "MPI itself, not logging: programs keep importing it from there",
        ),
    ),
}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages that the frameworks import and that their loggers do not use."""
    if "launchpad" not in sys.modules:
        monkeypatch.setitem(sys.modules, "launchpad", types.ModuleType("launchpad"))
    checkout = os.environ.get("ROLLBOOK_SPINNINGUP", "")
    if checkout and "spinup" not in sys.modules and find_spec("tensorflow") is None:
        monkeypatch.setitem(sys.modules, "tensorflow", types.ModuleType("tensorflow"))
        package = types.ModuleType("spinup")  # its __init__ imports all algorithms, those of TensorFlow 1 too
        package.__path__ = [str(Path(checkout, "spinup"))]
        monkeypatch.setitem(sys.modules, "spinup", package)


def theirs_and_ours(name: str) -> tuple[Any, Any]:
    """Both modules; skips where the framework is not in this environment."""
    top = name.partition(".")[0]
    if top not in sys.modules and find_spec(top) is None:
        pytest.skip(f"{top} is not in this environment")
    try:
        theirs = import_module(name)
    except ModuleNotFoundError as err:
        pytest.skip(f"{name} cannot be imported here: {err}")
    return theirs, import_module(f"{adapters.__name__}.{SURFACES[name][0]}")


@pytest.mark.parametrize("name", list(SURFACES))
def test_ours_has_every_name_method_and_argument_that_theirs_has(name: str) -> None:
    theirs, ours = theirs_and_ours(name)
    assert public_names(theirs)
    assert lacking_in_module(theirs, ours, SURFACES[name][1]) == []


@pytest.mark.parametrize("name", ["sb3", "acme", "tianshou", "spinningup", "tensorboard"])
def test_a_star_import_brings_names_that_exist_and_replaces_nothing_by_accident(name: str) -> None:
    import builtins

    for needed in {"tensorboard": ["tensorboard"], "sb3": ["stable_baselines3"]}.get(name, []):
        pytest.importorskip(needed)
    ours = import_module(f"{adapters.__name__}.{name}")
    brought: dict[str, Any] = {}
    exec(f"from {ours.__name__} import *", brought)
    brought.pop("__builtins__")
    assert set(brought) == set(ours.__all__)
    assert not {key for key in brought if hasattr(builtins, key)}
