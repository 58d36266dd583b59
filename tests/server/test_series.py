"""Curves as they come over the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import rollbook
from page_server import ROWS, client_of
from rollbook.server.frames import MEDIA_TYPE, Frame, unpack
from rollbook.server.settings import Limits


def curves(client: TestClient, **ask: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(entry, arrays) of each curve."""
    answer = client.post("/api/series", json=ask)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    return [
        (entry, arrays[n]) for header, arrays in unpack(answer.content) for n, entry in enumerate(header["entries"])
    ]


def test_one_request_gives_many_keys_of_many_runs(client: TestClient, runs: list[str]) -> None:
    found = curves(client, runs=runs, keys=["train/return", "update/loss"], points=100)
    assert [(entry["key"], entry["run"]) for entry, _ in found] == [
        (key, run) for key in ("train/return", "update/loss") for run in runs
    ]
    assert all(entry["kind"] == "envelope" and entry["rows"] == ROWS for entry, _ in found)


def test_an_envelope_loses_no_extreme_and_counts_what_is_no_number(
    client: TestClient, runs: list[str], recorded: Path
) -> None:
    ((entry, arrays),) = curves(client, runs=runs[:1], keys=["train/return"], points=200)
    book = next(book for book in rollbook.open(recorded) if book.id == runs[0])
    rows = book.series("train/return")
    finite = rows.mean[np.isfinite(rows.mean)]
    less_than_a_pixel = np.ptp(finite) * 1e-6
    assert arrays["min"].min() == pytest.approx(finite.min(), abs=less_than_a_pixel)
    assert arrays["max"].max() == pytest.approx(finite.max(), abs=less_than_a_pixel)
    assert entry["y_span"] == [finite.min(), finite.max()]
    assert arrays["bad.count"].sum() == np.isnan(rows.mean).sum()


def test_few_rows_a_pixel_come_as_they_are(client: TestClient, runs: list[str], recorded: Path) -> None:
    ((entry, arrays),) = curves(client, runs=runs[:1], keys=["train/return"], points=100, start=900, stop=1_200)
    book = next(book for book in rollbook.open(recorded) if book.id == runs[0])
    rows = book.series("train/return", start=900, stop=1_200)
    assert entry["kind"] == "raw"
    assert arrays["x"].tolist() == rows.x.tolist()
    assert np.array_equal(arrays["y"], rows.mean, equal_nan=True)
    assert arrays["bad.kind"].tolist() == [0]


def test_a_key_that_a_run_lacks_is_an_empty_curve_and_an_error_only_where_no_run_has_it(
    client: TestClient, runs: list[str]
) -> None:
    found = curves(client, runs=runs[:1], keys=["nothing", "train/return"])
    assert found[0][0]["kind"] == "none"
    assert found[0][0]["error"]["code"] == "unknown_key"
    assert found[1][0]["n"]


def test_an_axis_that_a_run_lacks_is_reported_in_its_place(client: TestClient, runs: list[str]) -> None:
    ((entry, _),) = curves(client, runs=runs[:1], keys=["train/return"], x="gradient_step")
    assert entry["kind"] == "none"
    assert entry["error"]["code"] == "unknown_axis"


@pytest.mark.parametrize("axis", ["time", "relative", "update/loss"])
def test_time_and_other_keys_can_be_the_axis(client: TestClient, runs: list[str], axis: str) -> None:
    ((entry, arrays),) = curves(client, runs=runs[:1], keys=["train/return"], x=axis, points=50)
    assert entry["x"] == axis
    assert entry["n"]
    if axis == "relative":
        assert 0 <= arrays["x"].min() < 60


def test_too_much_at_once_is_refused(client: TestClient, runs: list[str]) -> None:
    many = [f"k{n}" for n in range(2_000)]
    assert client.post("/api/series", json={"runs": runs, "keys": many}).status_code == 413
    assert client.post("/api/series", json={"runs": runs, "keys": ["a"], "points": 10**7}).status_code == 413
    assert client.post("/api/series", json={"runs": runs, "keys": ["a"], "points": 0}).status_code == 400


def test_float32_around_a_base_keeps_what_a_plot_shows() -> None:
    frame = Frame()
    values = 1e9 + np.linspace(0, 1e-3, 1_000)
    frame.entries.append({"arrays": {"y": frame.near(values, float(np.median(values)))}})
    frame.entries[0]["arrays"]["far"] = frame.near(np.array([1e300, np.nan, 1.0]), 0.0)
    ((_, arrays),) = unpack(frame.pack(last=True, took_ms=0))
    assert np.abs(arrays[0]["y"] - values).max() < 1e-6
    assert arrays[0]["far"][0] == 1e300


def test_what_runs_have_in_common_travels_once() -> None:
    frame = Frame()
    steps = np.arange(1_000) * 10.0
    for seed in range(5):
        frame.entries.append({"arrays": {"x": frame.steps(steps), "y": frame.near(steps + seed % 2, 0.0)}})
    body = frame.pack(last=True, took_ms=0)
    assert len(body) < 2_000 + 2 * 4_000 + 2_000
    ((_, arrays),) = unpack(body)
    for seed in range(5):
        np.testing.assert_allclose(arrays[seed]["x"], steps, atol=0.1)
        np.testing.assert_array_equal(arrays[seed]["y"], steps + seed % 2)


def test_what_a_rewind_abandoned_is_a_ghost(tmp_path: Path) -> None:

    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import") as run:
        for step in range(100):
            run.log({"v": step}, env_step=step)
        identity = run.id
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", run_id=identity, resume="must") as run:
        run.rewind(env_step=59)
        for step in range(60, 80):
            run.log({"v": -step}, env_step=step)
    with client_of(tmp_path) as client:
        found = curves(client, runs=[identity], keys=["v"], ghosts=True)
    assert [entry.get("ghost") for entry, _ in found] == [None, 1]
    assert found[1][1]["x"].tolist() == list(range(60, 100))
    assert found[0][1]["y"].tolist() == [*range(60), *(-step for step in range(60, 80))]


def test_curves_that_are_read_together_are_those_that_are_read_one_by_one(
    client: TestClient, runs: list[str], recorded: Path
) -> None:
    """With gaps and without, finely and coarsely, whole and in part: that the axis is divided once changes nothing."""
    book = next(book for book in rollbook.open(recorded) if book.id == runs[0])
    for points, part in ((7, {}), (100, {}), (50, {"start": 300, "stop": 1_900})):
        together = book.batch(["train/return", "update/loss"], points=points, **part)
        for key, series in together.items():
            alone = book.series(key, points=points, **part)
            for name in ("x", "mean", "min", "max", "count", "bad"):
                both = getattr(series, name), getattr(alone, name)
                assert np.allclose(*both, rtol=1e-12, equal_nan=True), (key, points, part, name)


def test_a_range_knows_the_whole_axis_whether_or_not_the_whole_was_seen_before(
    client: TestClient, runs: list[str]
) -> None:
    ((alone, _),) = curves(client, runs=runs[:1], keys=["train/return"], points=50, start=500, stop=4_000)
    ((whole, _),) = curves(client, runs=runs[:1], keys=["train/return"], points=500)
    ((after, _),) = curves(client, runs=runs[:1], keys=["train/return"], points=50, start=600, stop=4_000)
    assert after["span"] == whole["span"]
    assert alone["span"] == pytest.approx(whole["span"], rel=0.01, abs=whole["span"][1] * 0.01)


def test_many_curves_and_many_points_are_compressed_on_their_way(client: TestClient, recorded: Path) -> None:
    runs = [row["run"] for row in client.post("/api/runs", json={}).json()["rows"]]
    ask = {"runs": runs, "keys": ["train/return", "update/loss"], "points": 40}
    plain = client.post("/api/series", json=ask)
    assert "content-encoding" not in plain.headers
    with client_of(recorded, limits=Limits(zipped_curves=2)) as few:
        zipped = few.post("/api/series", json=ask)
        bare = few.post("/api/series", json=ask, headers={"Accept-Encoding": "identity"})
    assert zipped.headers["content-encoding"] == "gzip"
    same = [header | {"took_ms": 0} for header, _ in unpack(plain.content)]
    assert [header | {"took_ms": 0} for header, _ in unpack(zipped.content)] == same
    assert "content-encoding" not in bare.headers
    with client_of(recorded, limits=Limits(zipped_points=80 * len(runs))) as short:
        assert short.post("/api/series", json=ask).headers["content-encoding"] == "gzip"
