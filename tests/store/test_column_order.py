"""Each column of a file of series lies in one stretch, and any Parquet reader finds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rollbook.storage.column_order import by_columns


def written(path: Path, groups: int, **options: Any) -> pa.Table:
    n = 1000
    random = np.random.default_rng(0)
    table = pa.table(
        {
            "env_step": np.arange(groups * n),
            **{f"train/{i}": random.normal(size=groups * n) for i in range(20)},
            "phase": pa.array(["warm", "cold"] * (groups * n // 2)).dictionary_encode(),
            "seldom": pa.array([None, 1] * (groups * n // 2)),
            "nested": pa.array([[1, 2], None] * (groups * n // 2)),
            "done": pa.array([True, False] * (groups * n // 2)),
        }
    )
    told = {"use_dictionary": ["phase"], "compression": "zstd", "write_page_checksum": True, "store_schema": False}
    with pq.ParquetWriter(path, table.schema, **{**told, **options}) as writer:
        for group in range(groups):
            writer.write_table(table.slice(group * n, n))
        writer.add_key_value_metadata({"rollbook": "what it holds"})
    return table


def test_columns_lie_in_one_stretch_each_and_every_reader_reads_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    written(path, 20)
    before = pq.read_table(path)
    assert by_columns(str(path))
    file = pq.ParquetFile(path, page_checksum_verification=True)
    assert file.read().equals(before)
    assert file.read_row_group(7, columns=["train/3", "phase"]).equals(
        before.slice(7000, 1000).select(["train/3", "phase"])
    )
    assert file.metadata.metadata[b"rollbook"] == b"what it holds"
    for column in range(file.metadata.num_columns):
        chunks = [file.metadata.row_group(group).column(column) for group in range(20)]
        starts = [c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset for c in chunks]
        ends = [start + c.total_compressed_size for start, c in zip(starts, chunks, strict=True)]
        assert starts[1:] == ends[:-1]
    total = before["train/3"].slice(5001).to_numpy().sum()
    ((found,),) = duckdb.sql(f"""select sum("train/3") from '{path}' where env_step > 5000""").fetchall()
    assert found == pytest.approx(total)
    lazy = polars.scan_parquet(path).filter(polars.col("env_step") > 5000).select(polars.col("train/3").sum())
    assert lazy.collect().item() == pytest.approx(total)


def test_a_file_of_one_row_group_and_one_with_indexes_stay_as_they_are(tmp_path: Path) -> None:
    small, indexed = tmp_path / "small.parquet", tmp_path / "indexed.parquet"
    written(small, 1)
    written(indexed, 3, write_page_index=True)
    before = small.read_bytes(), indexed.read_bytes()
    assert not by_columns(str(small))
    with pytest.raises(ValueError, match="indexes"):
        by_columns(str(indexed))
    assert (small.read_bytes(), indexed.read_bytes()) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["indexed.parquet", "small.parquet"]


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    path.write_bytes(b"PAR1" + b"x" * 40)
    with pytest.raises(ValueError, match="is not a Parquet file"):
        by_columns(str(path))
