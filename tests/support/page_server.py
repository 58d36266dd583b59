"""Runs for the page to show, and a browser's side of its server."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import rollbook
from rollbook.server.app import make_app
from rollbook.server.settings import Settings

ROWS = 5_000


def record(folder: Path, name: str, seed: int, lr: float, rows: int = ROWS, **more: Any) -> str:
    """A finished run of project cartpole; gives its id."""
    config = {"lr": lr, "seed": seed, "net": {"width": 64}}
    with rollbook.init(
        "cartpole",
        name,
        seed=seed,
        config=config,
        dir=folder,
        sinks=[],
        keeper="inline",
        total={"env_step": rows},
        **more,
    ) as run:
        noise = random.Random(seed)
        for i in range(rows):
            value = math.nan if i % 997 == 5 else 100 * math.log1p(i * lr) + noise.gauss(0, 1)
            run.log({"train/return": value, "update/loss": 1 / (1 + i)}, env_step=i)
        run.note("half way", env_step=rows // 2)
        return run.id


def client_of(*roots: Path | str, **settings: Any) -> TestClient:
    """A browser's side of a server that shows some folders."""
    app = make_app(Settings(roots=tuple(map(str, roots)), **settings))
    return TestClient(app, base_url="http://127.0.0.1:7655", client=("127.0.0.1", 50000))
