"""What a store costs: shipping pieces of 4 MiB, and listing 10,000 runs by the catalogue with nothing in the cache.

python -m benchmarks.places               both, against moto in a process of its own
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

_LIST = """
import sys, time
began, cpu = time.perf_counter(), time.process_time()
import rollbook
rows = rollbook.open(sys.argv[1]).rows()
print(len(rows), time.perf_counter() - began, time.process_time() - cpu, end=" ")
cpu = time.process_time()
rollbook.open(sys.argv[1]).rows()
print(time.process_time() - cpu)
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.places")
    parser.add_argument("--pieces", type=int, default=128)
    parser.add_argument("--runs", type=int, default=10_000)
    given = parser.parse_args()
    sys.path.append(str(ROOT / "tests" / "support"))
    from stores import Moto, Proxy

    store = Moto()
    proxy = Proxy(store.address)  # which counts
    with tempfile.TemporaryDirectory(prefix="rollbook-places-") as folder:
        os.environ.update(
            AWS_ACCESS_KEY_ID="key",
            AWS_SECRET_ACCESS_KEY="secret",
            AWS_REGION="us-east-1",
            AWS_ALLOW_HTTP="true",
            AWS_ENDPOINT_URL=store.url,
            ROLLBOOK_CACHE=f"{folder}/cache",
        )
        try:
            ship(folder, f"s3://{store.bucket('ship')}/lab", given.pieces)
            listing(folder, f"s3://{store.bucket('many')}/lab", given.runs, proxy)
        finally:
            proxy.close()
            store.close()


def ship(folder: str, url: str, pieces: int) -> None:
    """Files of 4 MiB of a finished run: wall time, and processor time of this process."""
    import rollbook
    from rollbook.remote import open_remote
    from rollbook.remote.push import push

    with rollbook.init("bench", "ship", dir=folder, sinks=[], keeper="inline") as run:
        run.log({"a": 1.0}, env_step=1)
    (run.folder / "ckpt").mkdir(exist_ok=True)
    for n in range(pieces):
        (run.folder / "ckpt" / f"{n}.bin").write_bytes(os.urandom(4 << 20))
    time.sleep(2.5)  # what was written this moment is read twice
    began, cpu = time.perf_counter(), time.process_time()
    report = push(run.folder, url)
    wall, own = time.perf_counter() - began, time.process_time() - cpu
    megabytes = report.bytes / 1e6
    data, place = os.urandom(4 << 20), open_remote(url)
    began, cpu = time.perf_counter(), time.process_time()
    for n in range(pieces):
        place.put(f"bare/{n}", data, create=True)
    bare = time.process_time() - cpu
    print(
        f"{report.pieces} pieces, {megabytes:.0f} MB: {megabytes / wall:.0f} MB/s, {megabytes / own:.0f} MB for each "
        f"second of our processor time ({1000 * (own - bare) / megabytes:.2f} s/GB beyond what the client takes)"
    )


def listing(folder: str, url: str, runs: int, proxy: Any) -> None:
    """A catalogue of many runs, listed by a fresh process with an empty cache, and once more."""
    from rollbook.remote import claim, open_remote
    from rollbook.remote.catalogue import KEY, PAGES, read_catalogue
    from rollbook.schema import manifest

    place = open_remote(url)
    claim(place, make=True)
    from concurrent.futures import ThreadPoolExecutor

    def put(n: int) -> None:
        config = {"lr": 3e-4 * (1 + n % 7), "gamma": 0.99, "seed": n % 10, "env": f"Env-v{n % 13}", "layers": [64, 64]}
        values = {"train/return.last": n * 0.37, "train/return.best": n * 0.41, "test/return.last": n * 0.31}
        values |= {"test/return.best": n * 0.4, "length.env_step": 20_000 + n, "length.seconds": 900.5 + n % 77}
        page = {
            "results": {"attempt": 1, "values": values},
            "format": 1,
            "id": f"{n:08x}",
            "project": f"project-{n % 20}",
            "name": "ppo",
            "nonce": str(n),
            "seed": n % 10,
            "status": "finished",
            "created": 1.7e9 + n,
            "ended": 1.7e9 + n + 900,
            "config": config,
            "host": "node",
            "summary": {"train/return": n * 0.37},
            "attempts": [{"n": 1}],
        }
        key = f"{PAGES}project-{n % 20}/ppo-{n:08x}.json"
        row = manifest.listed(manifest.RunJson.of(page))
        place.put(key, json.dumps(row, separators=(",", ":"), sort_keys=True).encode())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(runs)))
    began = time.perf_counter()
    read_catalogue(place)
    made = time.perf_counter() - began
    size = len(place.get(KEY).data)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "ROLLBOOK_CACHE": f"{folder}/empty"}
    environment["AWS_ENDPOINT_URL"] = proxy.url
    said = subprocess.run(
        [sys.executable, "-c", _LIST, url], env=environment, capture_output=True, text=True, check=True
    )
    n, seconds, cpu, warm = said.stdout.split()
    began = time.perf_counter()
    names = sum(1 for _ in place.listing(PAGES))  # what the store takes by itself to tell them, a thousand a request
    alone = time.perf_counter() - began
    asked = ", ".join(f"{count} {verb}" for verb, count in proxy.verbs().items())
    print(
        f"{n} runs: catalogue of {size / 1e6:.2f} MB, made in {made:.0f} s; listed cold in {float(seconds):.2f} s "
        f"({float(cpu):.2f} s of processor time, imports included; the store alone takes {alone:.2f} s to tell the "
        f"{names} names), again with {float(warm) * 1e3:.0f} ms of processor "
        f"time; both together {asked}, {proxy.received() / 1e6:.2f} MB"
    )


if __name__ == "__main__":
    main()
