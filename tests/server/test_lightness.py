"""What an answer loads: a table library that is not asked for costs seconds at the first click."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook

pytest.importorskip("pandas", reason="what is not installed cannot be loaded")

_ASKS_ALL = """
import json, sys
from page_server import client_of
client = client_of(sys.argv[1])
run = sys.argv[2]
asked = [
    ("GET", "hello"), ("POST", "runs", {"columns": ["last:train/reward"]}), ("POST", "keys", {"runs": [run]}),
    ("POST", "series", {"runs": [run], "keys": ["train/reward"], "points": 100}), ("POST", "marks", {"runs": [run]}),
    ("GET", f"runs/{run}"), ("GET", f"runs/{run}/cause?x=env_step&at=1200&key=train/reward"),
    ("GET", f"runs/{run}/step?x=env_step&at=1200&key=train/reward&by=1"),
    ("POST", f"runs/{run}/episodes", {}), ("GET", f"runs/{run}/scatter?y=return"), ("GET", f"runs/{run}/episodes/e120"),
    ("GET", f"runs/{run}/episodes/e120/traces"), ("POST", f"runs/{run}/samples", {"search": "plus"}),
    ("GET", f"runs/{run}/timings"), ("GET", f"runs/{run}/timeline"), ("GET", f"runs/{run}/cost"),
    ("GET", f"runs/{run}/health"), ("POST", f"runs/{run}/media", {}), ("POST", f"runs/{run}/text", {}),
    ("POST", "alerts", {}),
]
loads = []
for method, path, *body in asked:
    answer = client.request(method, f"/api/{path}", json=body[0] if body else None)
    assert answer.status_code == 200, (path, answer.text)
    if not loads and (early := {"pandas", "mcp"} & sys.modules.keys()):
        loads += [path, *early]
print(json.dumps(loads))
"""


def test_no_answer_about_a_run_loads_pandas_or_what_agents_need(rich_folder: Path) -> None:
    (run,) = rollbook.open(rich_folder)
    support = str(Path(__file__).parents[1] / "support")
    words = [sys.executable, "-c", _ASKS_ALL, str(rich_folder), run.id]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=600, env={"PYTHONPATH": support, "PATH": ""}, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout.splitlines()[-1]) == []
