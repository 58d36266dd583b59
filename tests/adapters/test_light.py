"""Importing an adapter loads nothing that its program has not loaded: neither frameworks, nor numpy, nor torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook

HEAVY = {"numpy", "torch", "pandas", "matplotlib", "tensorflow", "mpi4py", "pyarrow", "ray", "tensorboard", "scipy"}
LIGHT = ("acme", "jax", "lightzero", "mrl", "optuna", "rllib", "spinningup", "tensorboard", "tianshou", "trl", "verl")


@pytest.mark.parametrize("adapter", LIGHT)
def test_importing_an_adapter_loads_nothing_heavy(adapter: str) -> None:
    code = f"import json, sys; import rollbook.adapters.{adapter}; print(json.dumps(sorted(sys.modules)))"
    env = {**os.environ, "PYTHONPATH": str(Path(rollbook.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert HEAVY & set(json.loads(done.stdout)) == set()
