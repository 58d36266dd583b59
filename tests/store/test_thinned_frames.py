"""Large chunks of rows of which only some are wanted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import rollbook
from rollbook.journal.reader import JournalReader, newest_rows
from rollbook.journal.rows import thinned
from rollbook.values.raw_array import RawArray


@given(n=st.integers(1, 500), most=st.integers(1, 60))
def test_a_chunk_keeps_evenly_spaced_rows_and_always_the_last(n: int, most: int) -> None:
    cells = RawArray("<f8", (n,), np.arange(float(n)).tobytes())
    steps = RawArray("<i8", (n,), np.arange(n).tobytes())
    payload = {"table": "metrics", "n": n, "columns": {"v": cells}, "clock_columns": {"env_step": steps}}
    few = thinned(payload, most)
    values = few["columns"]["v"].to_numpy()
    assert few["n"] == len(values) <= max(most, 1) or n <= most
    assert values[-1] == n - 1
    assert len(set(np.diff(values))) <= 1
    assert few["clock_columns"]["env_step"].to_numpy().tolist() == values.astype(int).tolist()
    if n <= most:
        assert few is payload


def test_of_many_rows_logged_at_once_the_newest_is_the_last(tmp_path: Path) -> None:
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], rules=[], keeper="inline") as run:
        run.log_many({"v": np.arange(5000.0)}, env_step=np.arange(5000))
        (row,) = [row for row in newest_rows(run.folder, {}) if "v" in row.values]
        assert (row.values["v"], row.clocks["env_step"]) == (4999.0, 4999)
        with JournalReader(run.folder, most_of_frame=10) as reader:
            values = [row.values["v"] for row in reader.rows_since({}) if "v" in row.values]
        assert len(values) == 10
        assert values[-1] == 4999.0
