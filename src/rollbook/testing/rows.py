"""Runs and rows for tests: an ordinary training, every kind of value, and hostile names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rollbook.protocols import Row, RunInfo, Sink
from rollbook.values import Histogram, Image, Video

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.protocols import Value

START = 1_700_000_000.0
CLOCKS = ("env_step", "gradient_step", "epoch")
HOSTILE = (
    "\x1b[2J\x1b[31mred",
    "line\nbreak\r\n",
    "tab\tand\x00nul",
    "../../../outside",
    "/absolute",
    "a,b;\"c\"'d'",
    "=1+1",
    "\u202etxt.exe",
    "\x9b31m",
    "éß漢字🎈",
    "\udc80half",
    "",
    " ",
    "con",
    "time",
    "x" * 400,
)
KINDS: tuple[Value, ...] = (
    1.5,
    7,
    True,
    "some text",
    Histogram([0.0, 0.5, 1.0], [3, 4]),
    Image("media/frame.png", 2, 1),
    Video("media/film.mp4", 2, 1, 30, 15.0),
)
EXTREMES: tuple[Value, ...] = (
    float("nan"),
    float("inf"),
    float("-inf"),
    -0.0,
    5e-324,
    1.7976931348623157e308,
    2**63,
    -(2**64),
    10**400,
    -(10**5000),
)


def folder_of_check(parent: Path, check: str) -> Path:
    """A new folder for one check.

    Raises:
      ValueError: `parent` is a file, or holds a check that ran earlier.
    """
    folder = Path(parent) / check
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ValueError(
            f"{parent} holds {check} of an earlier check: pass an empty folder, such as pytest's tmp_path"
        ) from None
    except NotADirectoryError:
        raise ValueError(f"{parent} is a file: pass an empty folder, such as pytest's tmp_path") from None
    return folder


def made_run(folder: Path, *, attempt: int = 1) -> RunInfo:
    """`some_run` with a folder that exists, as that of each run does: no sink makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    return some_run(folder, attempt=attempt)


def some_run(folder: Path, *, attempt: int = 1, clocks: Sequence[str] = CLOCKS) -> RunInfo:
    """A run to open a sink for, with all fields set.

    Args:
      folder: the run's folder; not created here.
      attempt: from 1; above 1 the run was resumed.
      clocks: names of the run's clocks; the first one is `x`.
    """
    return RunInfo(
        folder=folder,
        project="cartpole",
        name="ppo",
        id="k3v9x2ab",
        attempt=attempt,
        clocks=tuple(clocks),
        config={"lr": 3e-4, "net": {"hidden": [64, 64]}},
        seed=3,
        group="sweep",
        tags=("quick",),
        notes="a note",
        x=clocks[0] if clocks else "",
        resumed=attempt > 1,
    )


def training_rows(n: int, *, late_keys: int = 0) -> list[Row]:
    """n rows of an ordinary training: episodes, updates, timings, sometimes an evaluation, a note, a dump mark.

    Args:
      late_keys: this many further keys, each of which first appears somewhere along the way.
    """
    rows = []
    for i in range(n):
        clocks = {"env_step": 64 * i, "gradient_step": 4 * i}
        scope, mark = "", ""
        values: dict[str, Value]
        if i % 97 == 96:
            values, mark = {}, "dump"
        elif i % 50 == 49:
            values, scope = {"test/return": 0.5 * i, "test/episodes": 20}, "test"
        elif i % 41 == 40:
            values = {"note": f"row {i}"}
        elif i % 3 == 0:
            values, scope = {"train/return": i / 7, "train/length": i, "train/solved": i % 2 == 0}, "train"
        elif i % 3 == 1:
            values, scope = {"update/loss/policy": -1 / (i + 1), "update/loss/value": 1e3 / (i + 1)}, "update"
        else:
            values = {"time/collect_seconds": 0.01 * (i % 5)}
        if late_keys and values and i and i % max(1, n // (late_keys + 1)) == 0:
            values[f"late/key{i}"] = float(i)
        rows.append(Row(START + 0.25 * i, clocks, values, scope, "w1", 0, i + 1, 1, mark))
    return rows


def fill(sink: Sink, folder: Path, batches: Sequence[Sequence[Row]]) -> None:
    """A sink's whole use: open, all batches, close."""
    sink.open(made_run(folder / "run"))
    for batch in batches:
        sink.write(batch)
    sink.close()


def row(seq: int, values: dict[str, Value], scope: str = "") -> Row:
    """A row at second and step `seq`."""
    return Row(START + seq, {"env_step": seq}, values, scope, "w1", 0, seq)


def final(seq: int) -> Row:
    """The last mark of a run."""
    return Row(START + seq, {}, {}, "", "w1", 0, seq, 1, "final", ("killed",))


def saved(sink: Sink) -> tuple[dict[str, int], object]:
    """Position and state after conversion to JSON and back."""
    position = sink.position() if hasattr(sink, "position") else {}
    state = sink.state() if hasattr(sink, "state") else None
    back = json.loads(json.dumps([position, state], allow_nan=False))
    return back[0], back[1]
