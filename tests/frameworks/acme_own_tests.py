"""Runs the tests that Acme ships for its loggers, filters and counters, with ours in the place of theirs.

python acme_own_tests.py
"""

from __future__ import annotations

import importlib.util
import sys
import unittest
from pathlib import Path

import upstream_swap

TESTS = ("loggers/csv_test", "loggers/filters_test", "loggers/terminal_test", "counting_test")
"""Those of base.py want TensorFlow and jax, those of observers test observers."""


def main() -> int:
    upstream_swap.acme()
    import acme.utils

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
