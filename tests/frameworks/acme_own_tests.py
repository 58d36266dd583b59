"""Runs the tests that Acme ships for its loggers, filters and counters, with ours in the place of theirs.

python acme_own_tests.py
"""

from __future__ import annotations

import importlib.util
import sys
import types
import unittest
from pathlib import Path

sys.modules["launchpad"] = types.ModuleType("launchpad")  # acme imports it, and none of this uses it

import acme.utils  # noqa: E402
from absl import flags  # noqa: E402

from rollbook.adapters import acme as ours  # noqa: E402
from rollbook.adapters.acme import base, counting, csv, filters, terminal  # noqa: E402

TESTS = ("loggers/csv_test", "loggers/filters_test", "loggers/terminal_test", "counting_test")
"""Those of base.py want TensorFlow and jax, those of observers test observers."""


def put_in_place() -> None:
    """`from acme.utils.loggers import csv` gives ours from now on."""
    package = types.ModuleType("acme.utils.loggers")
    package.__dict__.update({name: value for name, value in vars(ours).items() if not name.startswith("__")})
    package.__path__ = []
    for name, module in {"base": base, "csv": csv, "filters": filters, "terminal": terminal}.items():
        sys.modules[f"acme.utils.loggers.{name}"] = module
        setattr(package, name, module)
    sys.modules["acme.utils.loggers"], sys.modules["acme.utils.counting"] = package, counting
    acme.utils.loggers, acme.utils.counting = package, counting


def main() -> int:
    put_in_place()
    flags.FLAGS(["tests"])
    home, suite = Path(acme.utils.__file__).parent, unittest.TestSuite()
    for name in TESTS:
        spec = importlib.util.spec_from_file_location(name.rpartition("/")[2], home / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(module))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    return 0 if result.wasSuccessful() and result.testsRun > 10 else 1


if __name__ == "__main__":
    sys.exit(main())
