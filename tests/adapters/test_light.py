"""Importing an adapter loads nothing that its program has not loaded: neither frameworks, nor numpy, nor torch."""

from __future__ import annotations

import json
import os

import pytest

from forked_programs import Interpreter

HEAVY = {"numpy", "torch", "pandas", "matplotlib", "tensorflow", "mpi4py", "pyarrow", "ray", "tensorboard", "scipy"}
LIGHT = ("acme", "jax", "lightzero", "mrl", "optuna", "rllib", "spinningup", "tensorboard", "tianshou", "trl", "verl")


@pytest.mark.parametrize("adapter", LIGHT)
def test_importing_an_adapter_loads_nothing_heavy(adapter: str, interpreter: Interpreter) -> None:
    code = f"import json, sys; import rollbook.adapters.{adapter}; print(json.dumps(sorted(sys.modules)))"
    done = interpreter.run(code, env=os.environ)
    assert HEAVY & set(json.loads(done.stdout)) == set()
