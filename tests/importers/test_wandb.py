"""W&B offline runs, as wandb 0.31.0 itself wrote them (samples/make_wandb.py)."""

from __future__ import annotations

import itertools
import math
import shutil
import zlib
from pathlib import Path

import pytest

import rollbook
from rollbook.formats.importers import import_runs
from rollbook.formats.importers.wandb import Wandb
from rollbook.protocols import ForeignRun, Row
from rollbook.values import Histogram

SAMPLE = Path(__file__).parent / "samples" / "run-k3v9x2ab.wandb"


def read(path: Path) -> tuple[ForeignRun, list[Row]]:
    (run,) = Wandb().runs(path)
    return run.read_details(), list(run.rows())


def test_what_a_run_is_comes_with_its_rows() -> None:
    run, rows = read(SAMPLE)
    assert (run.name, run.project, run.group, run.job_type, run.tags) == ("ppo-7", "study", "ppo", "train", ("a", "b"))
    assert (run.notes, run.seed, run.status) == ("hello", 7, "finished")
    assert run.config == {"lr": 3e-4, "seed": 7, "net": {"size": 64, "act": "tanh"}}
    assert len(rows) == 61


def test_every_number_is_the_one_that_was_logged() -> None:
    _run, rows = read(SAMPLE)
    for n, row in enumerate(rows[:60]):
        assert row.clocks == {"step": n, "env_step": n * 128}
        assert row.values["charts/episodic_return"] == n * 1.5
        if n not in (3, 4, 5):
            assert row.values["losses/value"] == 1 / (n + 1)
    odd = [rows[n].values["losses/value"] for n in (3, 4, 5)]
    assert isinstance(odd[0], float)
    assert math.isnan(odd[0])
    assert odd[1:] == [math.inf, -math.inf]
    assert rows[20].values["nested.x.y"] == 20
    assert rows[20].values["nested.z"] == 2.5
    assert rows[40].values["flag"] is True
    assert rows[40].values["note"] == "text 40"
    assert rows[60].values == {"part/a": 1, "part/b": 2.5}  # commit=False joins the next call
    assert all(b.time >= a.time > 1.7e9 for a, b in itertools.pairwise(rows))


def test_histograms_keep_their_bins_and_what_has_no_place_is_counted() -> None:
    run, rows = read(SAMPLE)
    bins = rows[0].values["h"]
    assert isinstance(bins, Histogram)
    assert (bins.edges, bins.counts) == ((0.0, 1.8, 3.6, 5.4, 7.2, 9.0), (2, 2, 2, 2, 2))
    assert run.left_out == {"lists": 3}


def test_a_run_that_is_still_written_gives_the_rows_that_are_whole_and_the_others_when_they_are_there(
    tmp_path: Path,
) -> None:
    data = SAMPLE.read_bytes()
    growing = tmp_path / "wandb" / "offline-run-1" / SAMPLE.name
    growing.parent.mkdir(parents=True)
    growing.write_bytes(data[: len(data) // 2])
    (first,) = import_runs(growing.parent, dir=tmp_path / "runs")
    assert 10 < first.rows < 61
    assert first.folder.parent.name == "study"
    import rollbook

    book = rollbook.open(tmp_path / "runs").one()
    assert (book.status, book.seed, book.group) == ("crashed", 7, "ppo")
    growing.write_bytes(data)
    (second,) = import_runs(growing.parent, dir=tmp_path / "runs")
    assert second.folder == first.folder
    assert first.rows + second.rows == 61
    book = rollbook.open(tmp_path / "runs").one()
    assert book.status == "finished"
    series = book.metrics(["charts/episodic_return"], x="env_step")
    assert series["charts/episodic_return"].to_pylist() == [n * 1.5 for n in range(60)]


def test_files_of_one_run_id_are_one_run_and_two_runs_of_one_name_are_two(tmp_path: Path) -> None:
    for folder, run_id in (("offline-run-1", "k3v9x2ab"), ("offline-run-2", "k3v9x2ab"), ("offline-run-3", "other123")):
        (tmp_path / folder).mkdir()
        shutil.copy(SAMPLE, tmp_path / folder / f"run-{run_id}.wandb")
    runs = list(Wandb().runs(tmp_path))
    assert [run.name for run in runs] == ["ppo-7-k3v9x2ab", "ppo-7-other123"]
    assert [len(list(run.rows())) for run in runs] == [122, 61]


def test_a_record_of_several_blocks_is_one_and_a_wrong_checksum_costs_its_block_alone(tmp_path: Path) -> None:
    text = "x" * 100_000
    file = tmp_path / "run-abc.wandb"
    file.write_bytes(log([history(0, a="1"), history(1, long=f'"{text}"'), history(2, a="3")]))
    run, rows = read(file)
    assert [row.values for row in rows] == [{"a": 1}, {"long": text}, {"a": 3}]
    assert run.left_out == {}
    damaged = bytearray(file.read_bytes())
    damaged[40_000] ^= 1  # in the middle piece of the long one
    file.write_bytes(damaged)
    run, rows = read(file)
    assert [row.values for row in rows] == [{"a": 1}, {"a": 3}]
    assert run.left_out == {"blocks of 32 KiB with a wrong checksum": 1}


def test_a_record_that_another_version_wrote_differently_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "wandb").mkdir()
    setting = field(5, field(1, field(1, b"lr") + field(16, b"{")))
    (tmp_path / "wandb" / "run-abc.wandb").write_bytes(log([field(17, b"\xff"), setting, history(0, a="1")]))
    runs = rollbook.open(tmp_path / "wandb")
    assert [book.series("a").mean.tolist() for book in runs] == [[1.0]]
    (problem,) = runs.problems
    assert "records that cannot be read (1)" in problem  # a value that is no JSON is a text, and costs nothing


def test_a_value_that_is_no_json_costs_no_other_value_of_its_record(tmp_path: Path) -> None:
    file = tmp_path / "run-abc.wandb"
    file.write_bytes(log([history(0, a="1", gpu="NVIDIA A100", b="2"), history(1, a="3", b="{")]))
    run, rows = read(file)
    assert [row.values for row in rows] == [{"a": 1, "gpu": "NVIDIA A100", "b": 2}, {"a": 3, "b": "{"}]
    assert run.left_out == {}


def history(step: int, **items: str) -> bytes:
    """A record of history whose items are JSON texts."""
    inside = b"".join(field(1, field(1, name.encode()) + field(16, value.encode())) for name, value in items.items())
    stamp = field(1, field(1, b"_timestamp") + field(16, f"{1.7e9 + step}".encode()))
    return field(2, inside + stamp + field(2, b"\x08" + bytes([step])))


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def log(records: list[bytes]) -> bytes:
    """A `.wandb` file: pieces with checksums in blocks of 32,768 bytes."""
    out = b":W&B\xe1\xbe\x00"
    for record in records:
        begun = False
        while True:
            left = 32_768 - len(out) % 32_768
            if left < 7:
                out, left = out + b"\0" * left, 32_768
            piece, record = record[: left - 7], record[left - 7 :]
            form = bytes([(3 if begun else 2) if record else (4 if begun else 1)])
            out += zlib.crc32(form + piece).to_bytes(4, "little") + len(piece).to_bytes(2, "little") + form + piece
            begun = True
            if not record:
                break
    return out
