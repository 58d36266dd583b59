"""Runs for the page to show, and a browser's side of its server."""

from __future__ import annotations

import contextlib
import functools
import http.server
import math
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from starlette.testclient import TestClient

import rollbook
from rollbook.server.app import make_app
from rollbook.server.settings import ServerSettings

ROWS = 5_000


@contextlib.contextmanager
def file_server(folder: Path) -> Iterator[str]:
    """A plain file server, which knows nothing of rollbook; gives its address."""
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    handler = functools.partial(quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


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
        keeper="import",
        total={"env_step": rows},
        **more,
    ) as run:
        noise = random.Random(seed)
        for i in range(rows):
            value = math.nan if i % 997 == 5 else 100 * math.log1p(i * lr) + noise.gauss(0, 1)
            run.log({"train/return": value, "update/loss": 1 / (1 + i)}, env_step=i)
        run.note("half way", env_step=rows // 2)
        return run.id


def record_rich(folder: Path) -> str:
    """A finished run with rows in every table; gives its id."""
    with rollbook.init(
        "rich",
        "grpo",
        seed=1,
        config={"lr": 1e-6},
        dir=folder,
        sinks=["text"],
        keeper="import",
        rules=(),  # its alerts are said below
    ) as run:
        noise = random.Random(1)
        for step in range(200):
            run.clock(env_step=step * 10)
            with run.timer("update"), run.timer("backward"):
                pass
            spike = 25.0 if step == 120 else 0.0
            run.log(
                {"train/reward": step / 100 + spike, "update/kl": 0.01 + noise.random() / 1e3 + spike},
                env_step=step * 10,
            )
            if step % 10 == 0:
                run.log_episode(
                    episode_id=f"e{step}",
                    return_=float(step),
                    length=2,
                    terminated=step % 20 == 0,
                    truncated=step % 20 != 0,
                    steps_kept="all" if step == 120 else None,
                    env_step=step * 10,
                )
            if step % 20 == 0:
                prompts = [f"what is {step // 40} plus {n // 2}?" for n in range(4)]
                completions = [
                    f"It is {step // 40 + n // 2}. <script>alert({n})</script>" + "long " * 100 for n in range(4)
                ]
                run.log_samples(
                    completions,
                    group=[f"g{n // 2}" for n in range(4)],
                    prompt=prompts,
                    completion=completions,
                    reward=[0.0, 1.0, 1.0, 1.0],
                    env_step=step * 10,
                )
            if step == 120:
                run.record(
                    "steps",
                    {
                        "episode_id": ["e120"] * 2,
                        "t": [0, 1],
                        "reward": [1.0, 2.0],
                        "obs": [[0.5, 1.5], [2.5, math.nan]],
                        "info/speed": [1.0, 2.0],
                    },
                    n=2,
                    env_step=step * 10,
                )
                run.log_image("eval/view", np.full((4, 4, 3), 255, dtype=np.uint8), env_step=step * 10)
                evidence = '{"episode_id": "e120", "key": "update/kl"}'
                run.record(
                    "alerts",
                    {
                        "rule": ["kl"],
                        "level": ["act"],
                        "message": ["moved too far"],
                        "evidence": [evidence],
                        "source": ["test"],
                    },
                    n=1,
                    env_step=step * 10,
                )
                run.note("look here <b>now</b>", env_step=step * 10)
            if step in (50, 150):
                run.save_checkpoint(
                    write=lambda path: Path(path).write_bytes(b"state"), score=float(step), env_step=step * 10
                )
        return run.id


def client_of(*roots: Path | str, **settings: Any) -> TestClient:
    """A browser's side of a server that shows some folders."""
    app = make_app(ServerSettings(roots=tuple(map(str, roots)), **settings))
    return TestClient(app, base_url="http://127.0.0.1:7655", client=("127.0.0.1", 50000))
