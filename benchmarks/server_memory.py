"""Does a server's memory stay flat, whatever is asked? All endpoints that only read, in turns, over a folder of runs.

    python -m benchmarks.server_memory                        # 100 runs, each endpoint 2,000 times
    python -m benchmarks.server_memory --times 100            # shorter

Printed at each tenth: the server's resident memory, and the statuses of the answers. In the first tenths caches fill;
what is judged is the growth from the middle to the end. `benchmarks.live_page` does the same while runs are written.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import numpy as np

import rollbook
from benchmarks.harness import end_like_ctrl_c
from benchmarks.live_page import resident
from benchmarks.page import our_server
from rollbook.server.openapi import ENDPOINTS
from rollbook.server.shared.endpoint import Endpoint

_SOURCES, _ROWS = 4, 2_000
_KEYS = ["train/return", "update/loss", "update/entropy"]


def recorded(root: Path, runs: int) -> None:
    """So many runs with rows in most tables, copies of a few."""
    for seed in range(_SOURCES):
        rng = np.random.default_rng(seed)
        with rollbook.init(
            "study",
            "ppo",
            seed=seed,
            dir=root / "sources",
            sinks=[],
            keeper="inline",
            config={"algo": f"a{seed % 2}", "lr": 1e-3 * (1 + seed)},
        ) as run:
            run.log_many({key: rng.normal(size=_ROWS).cumsum() for key in _KEYS}, env_step=np.arange(_ROWS) * 10)
            for step in range(200):
                run.log_episode(return_=float(step), length=10, env_step=step * 100)
                run.log_samples([f"what is {step % 20} + {step % 7}?"], prompt=["a sum"], reward=[0.5])
                run.log_text("note", f"step {step}", env_step=step * 100)
                with run.timer("update"):
                    pass
    sources = sorted((root / "sources" / "study").iterdir())
    for place in range(runs):
        source, to = sources[place % len(sources)], root / "runs" / "study" / f"ppo-copy{place:04d}"
        shutil.copytree(source, to)
        about = json.loads((source / "run.json").read_text())
        about |= {"id": f"copy{place:04d}", "seed": place // len(sources)}
        (to / "run.json").write_text(json.dumps(about))


def request(endpoint: Endpoint, runs: list[str], place: int) -> tuple[str, str, bytes | None]:
    """Method, address and body of the place-th request to an endpoint; what is asked differs from one to the next."""
    some = [runs[(place + n) % len(runs)] for n in range(10)]
    fields: dict[str, Any] = {
        "run": some[0],
        "runs": some,
        "other": some[1],
        "keys": [_KEYS[place % 3]],
        "metric": _KEYS[place % 3],
        "key": _KEYS[place % 3],
        "at": 10 * (place % _ROWS),
        "by": "config.algo",
        "table": "episodes",
        "rows": [0],
        "episode": f"e{place}",
        "id": str(place),
        "path": "run.json",
        "query": f'select max("{_KEYS[0]}") + {place} from metrics',
    }
    asked = {field.name for field in msgspec.structs.fields(endpoint.ask)} & fields.keys()
    needed = {field.encode_name for field in msgspec.structs.fields(endpoint.ask) if field.required}
    given = {name: fields[name] for name in asked & (needed | {"runs"})}
    path = endpoint.path
    for name in endpoint.path_names:
        path = path.replace(f"{{{name}}}", quote(str(given.pop(name)))).replace(
            f"{{{name}:path}}", quote(str(fields[name]))
        )
    if endpoint.method == "POST":
        return "POST", path, json.dumps(given).encode()
    return "GET", f"{path}?{urlencode(given, doseq=True)}" if given else path, None


def asked(address: str, method: str, path: str, body: bytes | None) -> int:
    """The status of an answer, which is read to its end."""
    headers = {} if body is None else {"Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address + path.lstrip("/"), body, headers, method=method), timeout=120
        ) as answer:
            while answer.read(1 << 20):
                pass
            return int(answer.status)
    except urllib.error.HTTPError as err:
        err.read()
        return err.code


def main() -> None:
    """Ask, and print a line at each tenth."""
    end_like_ctrl_c()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server_memory")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--times", type=int, default=2_000, help="how often each endpoint is asked")
    given = parser.parse_args()
    reading = [endpoint for endpoint in ENDPOINTS if not endpoint.edits and endpoint.method in ("GET", "POST")]
    with tempfile.TemporaryDirectory(prefix="rollbook-server-") as folder:
        recorded(Path(folder), given.runs)
        with our_server(Path(folder) / "runs") as (address, pid):
            with urllib.request.urlopen(f"{address}api/newest") as answer:
                answer.read()
            body = json.dumps({"sections": False, "limit": given.runs}).encode()
            with urllib.request.urlopen(
                urllib.request.Request(f"{address}api/runs", body, {"Content-Type": "application/json"})
            ) as answer:
                runs = [row["run"] for row in json.load(answer)["rows"]]
            statuses: Counter[int] = Counter()
            sizes = []
            for place in range(given.times):
                for endpoint in reading:
                    statuses[asked(address, *request(endpoint, runs, place))] += 1
                if (place + 1) % max(1, given.times // 10) == 0:
                    sizes.append(resident([pid]))
                    words = ", ".join(f"{many} of status {status}" for status, many in sorted(statuses.items()))
                    print(f"{place + 1:6,} times {len(reading)} endpoints: {sizes[-1]:7.1f} MiB; {words}", flush=True)
            print(f"from the middle to the end: {sizes[-1] - sizes[len(sizes) // 2 - 1]:+.1f} MiB")


if __name__ == "__main__":
    main()
