"""A series of a wide table costs its own bytes and few requests, counted in the proxy."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import rollbook
from rollbook.remote import views
from rollbook.remote.push import push
from rollbook.system.tuning import TUNING


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """20 columns of noise, in parts of one and of several row groups."""
    import numpy as np

    random = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("wide") / "runs"
    with (
        TUNING.changed(group_rows=128 * 256),
        rollbook.init("cartpole", "wide", dir=folder, sinks=[], keeper="inline", rules=()) as run,
    ):
        for first, rows in ((0, 75_000), (75_000, 5_000)):
            columns = {f"train/{n}": random.normal(size=rows).round(2) for n in range(20)}
            run.log_many(columns, env_step=np.arange(first, first + rows))
    return run.folder


def test_one_series_of_twenty_columns_costs_its_bytes_and_few_requests(wide, bucket, proxy):
    push(wide, bucket)
    book = rollbook.open(bucket).one()
    proxy.clear()
    rows = len(book.series("train/7", x="env_step").x)
    files, groups, own = 0, 0, 0
    for path in (wide / "data" / "metrics" / "wide").glob("*.parquet"):
        about = pq.ParquetFile(path).metadata
        if not about.num_rows:
            continue
        files += 1
        groups += about.num_row_groups
        for group in range(about.num_row_groups):
            row_group = about.row_group(group)
            for n in range(row_group.num_columns):
                column = row_group.column(n)
                if column.path_in_schema in ("train/7", "env_step", "seq", "time"):
                    own += column.total_compressed_size
    assert rows == 80_000
    assert groups >= 3
    assert proxy.received("/p/") <= 1.3 * own
    assert proxy.count("GET", "/p/") <= 3 * files
    views.forget()
    proxy.clear()
    rollbook.open(bucket).one().series("train/7", x="env_step")
    assert proxy.count("GET", "/p/") == 0
