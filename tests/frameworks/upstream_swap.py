"""A pytest plugin: puts rollbook's classes in the place of a framework's own before its own tests are collected.

    ROLLBOOK_SWAP=stable-baselines3 python -m pytest -p upstream_swap <checkout>/tests/test_logger.py

Every module of the framework that holds one of the replaced objects gets ours, and so do the tests.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import pkgutil
import sys
import types
from typing import Any


def replace(package: str, ours: dict[Any, Any]) -> None:
    """In every loaded module of `package`, put the values of `ours` where its keys are."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != package:
            continue
        for attribute, value in list(vars(module).items()):
            try:
                swapped = ours.get(value)
            except TypeError:  # not hashable, so none of them
                continue
            if swapped is not None:
                setattr(module, attribute, swapped)


def load_all(package: str) -> None:
    """Import the modules of a package, so that none binds a name afterwards."""
    module = importlib.import_module(package)
    for part in pkgutil.walk_packages(module.__path__, f"{package}."):
        try:
            importlib.import_module(part.name)
        except Exception:  # what it needs besides is not here; then its tests do not use it either
            continue


def stable_baselines3() -> None:
    load_all("stable_baselines3")
    from stable_baselines3.common import logger

    from rollbook.adapters import sb3 as ours

    replace("stable_baselines3", {logger.configure: functools.partial(ours.configure, run=False)})


def tianshou() -> None:
    load_all("tianshou.utils")
    from tianshou.utils import logger  # noqa: F401
    from tianshou.utils.logger.logger_base import LazyLogger
    from tianshou.utils.logger.tensorboard import TensorboardLogger

    from rollbook.adapters import tianshou as ours

    replace(
        "tianshou",
        {LazyLogger: ours.LazyLogger, TensorboardLogger: functools.partial(ours.TensorboardLogger, run=False)},
    )


def tensorboardx() -> None:
    import tensorboardX
    from tensorboardX.writer import SummaryWriter as Theirs

    from rollbook.adapters.tensorboard import SummaryWriter

    replace("tensorboardX", {Theirs: functools.partial(SummaryWriter, run=False, events="rollbook")})
    assert tensorboardX.SummaryWriter is not Theirs


def torch_writer() -> None:
    from torch.utils import tensorboard
    from torch.utils.tensorboard.writer import SummaryWriter as Theirs

    from rollbook.adapters.tensorboard import SummaryWriter

    replace("torch", {Theirs: functools.partial(SummaryWriter, run=False, events="rollbook")})
    sys.modules.setdefault("expecttest", types.SimpleNamespace(ACCEPT=False))  # type: ignore[arg-type]
    assert tensorboard.SummaryWriter is not Theirs


def acme() -> None:
    sys.modules["launchpad"] = types.ModuleType("launchpad")  # acme imports it, and none of this uses it
    import acme.utils
    from absl import flags

    from rollbook.adapters import acme as ours
    from rollbook.adapters.acme import base, counting, csv, filters, paths, terminal

    package = types.ModuleType("acme.utils.loggers")
    package.__dict__.update({name: value for name, value in vars(ours).items() if not name.startswith("__")})
    package.__path__ = []
    for name, module in {"base": base, "csv": csv, "filters": filters, "terminal": terminal}.items():
        sys.modules[f"acme.utils.loggers.{name}"] = module
        setattr(package, name, module)
    sys.modules["acme.utils.loggers"], sys.modules["acme.utils.counting"] = package, counting
    sys.modules["acme.utils.paths"] = paths
    acme.utils.loggers, acme.utils.counting, acme.utils.paths = package, counting, paths
    testing = types.ModuleType("acme.testing")
    testing.__path__ = []  # type: ignore[attr-defined]
    helpers = types.ModuleType("acme.testing.test_utils")
    from absl.testing import parameterized

    class TestCase(parameterized.TestCase):  # type: ignore[misc,name-defined]
        """Has the one method of Acme's own class that these tests call, without what that imports besides."""

        def get_tempdir(self, name: str | None = None) -> str:
            return str(self.create_tempdir(name).full_path)

    helpers.TestCase = TestCase  # type: ignore[attr-defined]
    sys.modules["acme.testing"], sys.modules["acme.testing.test_utils"] = testing, helpers
    flags.FLAGS(["tests"])


def di_engine() -> None:
    for package in ("ding.utils", "ding.worker", "ding.framework"):
        load_all(package)
    from ding.framework.middleware.functional import logger
    from ding.utils import log_helper

    from rollbook.adapters import lightzero as ours

    names = ("build_logger", "pretty_print", "get_tabulate_vars", "get_tabulate_vars_hor")
    pairs: dict[Any, Any] = {getattr(log_helper, name, None): getattr(ours, name) for name in names}
    pairs.pop(None, None)
    replace("ding", {**pairs, logger.online_logger: ours.online_logger})
    assert log_helper.build_logger is ours.build_logger
    if importlib.util.find_spec("wandb") is None:  # the file imports it for the tests of another logger
        sys.modules["wandb"] = types.ModuleType("wandb")


SWAPS = {
    "DI-engine": di_engine,
    "stable-baselines3": stable_baselines3,
    "tianshou": tianshou,
    "tensorboardX": tensorboardx,
    "pytorch": torch_writer,
    "acme": acme,
}

if os.environ.get("ROLLBOOK_SWAP"):
    SWAPS[os.environ["ROLLBOOK_SWAP"]]()
