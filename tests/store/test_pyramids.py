"""Levels of a large part that somebody made up: refused, whatever they claim, before they take any memory."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rollbook.storage import pyramid
from rollbook.storage.pyramid import Pyramid, PyramidWriter

ROWS = 1_000
IDENTITY = {"rows": ROWS, "first_seq": 1, "last_seq": ROWS}
SOUND = {"axes": ["seq"], "keys": ["loss"], "blocks": [[8, ROWS]], **IDENTITY}


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """The levels of a part of 1,000 rows."""
    path = tmp_path / "metrics.part.pyr"
    writer = PyramidWriter(str(path), ["seq"], ["loss"])
    writer.add(pa.table({"seq": list(range(1, ROWS + 1)), "loss": [0.5] * ROWS}))
    writer.finish(IDENTITY)
    return path


def opened(path: Path) -> Pyramid:
    return Pyramid(str(path), rows=ROWS, first_seq=1, last_seq=ROWS)


def forge(path: Path, index: bytes) -> None:
    """Give a pyramid another index, with the checksum that belongs to it."""
    data = path.read_bytes()
    offset = pyramid._TAIL.unpack(data[-pyramid._TAIL.size :])[0]
    tail = pyramid._TAIL.pack(offset, len(index), zlib.crc32(index), pyramid._MAGIC)
    path.write_bytes(data[:offset] + index + tail)


def test_levels_are_read_back(sound: Path) -> None:
    assert opened(sound).read(["loss"], 0, [0])[0][3].sum() == ROWS
    forge(sound, json.dumps(SOUND).encode())
    assert opened(sound).read(["seq"], 0, [0])[0][4].sum() == ROWS
    assert opened(sound).read(["loss"], 0, [])[0].shape == (5, 0)


@pytest.mark.parametrize("odd", [False, True])
def test_each_bucket_has_what_a_count_of_its_rows_gives(tmp_path: Path, odd: bool) -> None:
    """Lowest, highest, sum and count of the finite values, and how many are not finite; missing ones count nowhere."""
    values = np.random.default_rng(0).normal(5, 1, ROWS)
    missing = np.zeros(ROWS, dtype=bool)
    if odd:
        values[::7], values[3::11], missing[::5] = np.nan, np.inf, True
        values[:256] = np.nan
    writer = PyramidWriter(str(tmp_path / "metrics.part.pyr"), ["seq"], ["loss"])
    writer.add(pa.table({"seq": np.arange(1, ROWS + 1), "loss": pa.array(values, mask=missing)}))
    writer.finish(IDENTITY)
    made = opened(tmp_path / "metrics.part.pyr")
    for level in range(2):
        found = made.read(["loss"], level, [0])[0]
        width = 1 << pyramid._BASE_BITS + pyramid._STEP_BITS * level
        assert found.shape[1] == -(-ROWS // width)
        for bucket, numbers in enumerate(found.T):
            rows = slice(bucket * width, (bucket + 1) * width)
            kept = values[rows][np.isfinite(values[rows]) & ~missing[rows]]
            others = int((~np.isfinite(values[rows]) & ~missing[rows]).sum())
            ends = (kept.min(), kept.max()) if len(kept) else (np.inf, -np.inf)
            assert numbers.tolist() == pytest.approx([*ends, kept.sum(), len(kept), others])


@pytest.mark.parametrize(
    "changes",
    [
        {"blocks": [[8, 10**15], [8, ROWS - 10**15]]},  # adds up, and asks for petabytes
        {"blocks": [[10**15, ROWS]]},
        {"blocks": [[-(10**15), ROWS]]},
        {"blocks": [[8, ROWS // 2]] * 2},  # the same bytes again and again
        {"blocks": [[8, 1]] * ROWS},
        {"blocks": [[8, float("inf")]]},
        {"blocks": [[8]]},
        {"blocks": 7},
        {"axes": 7},
        {"keys": ["loss"] * 100_000},
        {"rows": 10**15},
        {"rows": None},
    ],
)
def test_a_forged_index_is_refused(sound: Path, changes: dict[str, Any]) -> None:
    forge(sound, json.dumps({**SOUND, **changes}).encode())
    with pytest.raises(ValueError, match=r"metrics\.part\.pyr"):
        opened(sound)


@pytest.mark.parametrize("index", [b"[" * 100_000, b"9" * 100_000, b"[]", b"null", b"\xff"])
def test_an_index_that_is_none_is_refused(sound: Path, index: bytes) -> None:
    forge(sound, index)
    with pytest.raises(ValueError, match=r"metrics\.part\.pyr"):
        opened(sound)


def test_a_sparse_file_whose_index_has_gigabytes_is_not_read(sound: Path) -> None:
    length = 3 << 30
    with sound.open("wb") as file:
        file.truncate(length)
        file.seek(0, os.SEEK_END)
        file.write(pyramid._TAIL.pack(0, length, 0, pyramid._MAGIC))
    with pytest.raises(ValueError, match="not a pyramid"):
        opened(sound)
