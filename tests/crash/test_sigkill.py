"""What `log` returned from is in the book after a SIGKILL: of the training, of its keeper, of both."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from cases import some_of
from rollbook.book.book import Book
from tortured import SLOTS, Progress
from waiting import until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes by the Linux rules"),
    pytest.mark.usefixtures("real_sealing_children"),
]

KILLS = int(os.environ.get("ROLLBOOK_KILLS", "5"))
"""Cases of each kind, one in `make test`, all in `make test-long`: with 100 three hundred trainings are killed."""

PROGRAM = Path(__file__).parent.parent / "support" / "tortured.py"


def keeper_pids(folder: str) -> list[int]:
    """Living keepers and sealers of a run."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                command = Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            if folder.encode() in command and b"tortured" not in command:
                found.append(int(entry))
    return found


def has_crashed(folder: str) -> bool:
    """Whether a keeper has seen that nobody writes this run any more."""
    return bool(json.loads((Path(folder) / "run.json").read_text())["status"] == "crashed")


def check(folder: str, counted: list[int], *, exact_keys: bool = True) -> int:
    """Every counted row is there once and whole. Returns how many there are."""
    table = Book(folder).metrics(["slot", "i", "x"], attempts="all")
    slots, numbers, xs = (table[name].to_pylist() for name in ("slot", "i", "x"))
    seen = Counter(zip(slots, numbers, strict=True))
    twice = [key for key, n in seen.items() if n > 1]
    assert not twice, f"{len(twice)} rows twice, such as {twice[:5]}"
    torn = [(s, i, x) for s, i, x in zip(slots, numbers, xs, strict=True) if x != s * 1e9 + i]
    assert not torn, f"torn rows: {torn[:5]}"
    lost = [(slot, i) for slot in range(SLOTS) for i in range(counted[slot]) if (slot, i) not in seen]
    assert not lost, f"{len(lost)} of {sum(counted)} acknowledged rows lost, such as {lost[:5]}"
    return len(seen)


@pytest.mark.parametrize("victims", some_of(["both", "training", "keeper"], 1))
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, KILLS))])
def test_no_acknowledged_row_is_lost_twice_or_torn(
    tmp_path: Path, victims: str, seed: int, request: pytest.FixtureRequest
) -> None:
    rng = random.Random(f"{victims}{seed}")
    path = tmp_path / "progress"
    path.write_bytes(bytes(8 * SLOTS))
    progress = Progress(str(path))
    training = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(tmp_path), str(seed), str(path)],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stderr=(tmp_path / "stderr").open("wb"),
    )
    request.addfinalizer(lambda: _kill_group(training))
    folder = until(lambda: (tmp_path / "where").exists() and (tmp_path / "where").read_text())
    until(lambda: progress.all()[0] > 50 and sum(progress.all()) > 100)
    deadline = time.monotonic() + rng.uniform(0.2, 1.0)
    while time.monotonic() < deadline:
        before = progress.all()
        check(folder, before)  # while it is being written
        if victims in ("keeper", "both") and rng.random() < 0.5:
            for pid in keeper_pids(folder):
                _kill(pid)
    _kill_group(training)
    if victims == "both":
        for pid in keeper_pids(folder):
            _kill(pid)
    counted = progress.all()
    rows = check(folder, counted)
    assert rows >= sum(counted) > 100
    if victims != "training":
        from rollbook.keeper.launch import launch

        # The next keeper of this host carries on, once the killed one has let go of its lock.
        until(lambda: launch(folder) or has_crashed(folder))
    until(lambda: has_crashed(folder))
    until(lambda: not list(Path(folder).glob("data/journal/*/*.seg")))
    assert check(folder, counted) == rows, "a sealed run gives the same answer as a crashed one"
    assert Book(folder).status == "crashed"
    until(lambda: not keeper_pids(folder))
    until(lambda: sum(delivered_to_the_file(folder).values()) >= rows, "the shared keeper catches up")
    delivered = delivered_to_the_file(folder)
    assert max(delivered.values()) == 1, "a file sink never gets a row twice"
    assert len(delivered) == rows, "nor misses one"


def delivered_to_the_file(folder: str) -> Counter[tuple[int, int]]:
    """How often each row is in the file of the sink; its last line may be half written."""
    written = (Path(folder) / "log" / "jsonl" / "metrics.jsonl").read_text().rpartition("\n")[0]
    lines = [json.loads(line) for line in written.splitlines()]
    return Counter((line["slot"], line["i"]) for line in lines if "slot" in line)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
