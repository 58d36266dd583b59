"""Samples: rows per item, and the word which of them are new."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rollbook
from cases import some_of
from rollbook.capture.samples.recorder import SampleLog
from rollbook.capture.samples.seen import Seen
from rollbook.errors import BadInput
from rollbook.values.content import canonical, fingerprint


@pytest.fixture
def samples(notebook: Any) -> Any:
    log = SampleLog(notebook)
    return lambda items, **columns: log.log_samples(notebook, items, **columns)


def test_each_item_is_a_row_and_new_is_known_at_once(notebook: Any, samples: Any) -> None:
    logged = samples(["a", "b", "a"], reward=[1.0, 2.0, 3.0])
    assert (logged.new, logged.count) == ([True, True, False], 3)
    assert samples(["b", "c"], reward=np.array([4.0, 5.0])).new == [False, True]
    assert notebook.columns("samples", "item", "is_new", "first_seen", "batch", "reward") == [
        ("a", True, 0, 0, 1.0),
        ("b", True, 0, 0, 2.0),
        ("a", False, 0, 0, 3.0),
        ("b", False, 0, 1, 4.0),
        ("c", True, 1, 1, 5.0),
    ]


def test_the_share_of_new_items_and_the_diversity_are_curves(notebook: Any, samples: Any) -> None:
    samples(["a", "b", "a", "a"])
    assert notebook.logged == [{"samples/new": 0.5, "samples/diversity": 0.5, "samples/count": 4, "samples/unique": 2}]


def test_no_two_rows_share_an_id_and_equal_items_share_their_content(notebook: Any, samples: Any) -> None:
    assert samples(["x", "y"], ids=["prompt-812", 7]).ids == ["prompt-812", "7"]
    logged = [samples(["x", "x", "y"]), samples(["x"]), SampleLog(notebook).log_samples(notebook, ["x"])]
    ids = [identity for batch in logged for identity in batch.ids]
    assert len(set(ids)) == 5
    assert ids == [row["sample_id"] for row in notebook.table("samples")[2:]]
    contents = notebook.columns("samples", "item", "content")
    assert {item: {content for other, content in contents if other == item} for item, _ in contents} == {
        "x": {f"{fingerprint(b'x'):016x}"},
        "y": {f"{fingerprint(b'y'):016x}"},
    }
    assert samples([object()], ids=[None]).ids[0]
    assert notebook.table("samples")[-1].get("content") is None


@pytest.mark.parametrize(
    ("kind", "sealed"),
    some_of(
        itertools.product(["float32", "float64", "int8", "int32", "int64", "uint16"], [False, True]),
        lambda case: case[1] == (case[0] in ("float32", "int64", "uint16")),
    ),
)
def test_lists_of_a_type_keep_it_whatever_their_length(kind: str, sealed: bool, tmp_path: Path) -> None:
    cells = [np.array(numbers, kind) for numbers in ([1, 2, 3], [4], [], [5, 6])]
    run = rollbook.init("p", "t", dir=tmp_path, sinks=(), keeper="inline")
    run.log_samples(["a", "b", "c", "d"], numbers=cells, plain=[cell.tolist() for cell in cells])
    if sealed:
        run.finish()
    table = run.book.samples()
    assert table["numbers"].to_pylist() == [cell.tolist() for cell in cells] == table["plain"].to_pylist()
    assert np.dtype(table["numbers"].type.value_type.to_pandas_dtype()) == np.dtype(kind)
    run.finish()


def test_every_number_of_a_token_that_the_page_shows_is_a_column_that_the_docs_name() -> None:
    """Columns that nobody is told of are never written."""
    from rollbook.server.tables import rollouts, samples

    docs = Path(__file__).resolve().parents[2] / "docs"
    of_samples = (docs / "samples.md").read_text("utf-8")
    assert [
        names for names in samples._TOKEN_NUMBERS.values() if not any(f"`{name}`" in of_samples for name in names)
    ] == []
    of_rollouts = (docs / "internals.md").read_text("utf-8")
    assert [name for name in rollouts._TOKENS.values() if name not in of_rollouts] == []


def test_runs_that_knew_samples_by_their_content_alone_are_read_as_before(tmp_path: Path) -> None:
    """Rows of an earlier version: the digits of the content as sample_id, and no column for it."""
    run = rollbook.init("p", "t", dir=tmp_path, sinks=(), keeper="inline")
    digits = f"{fingerprint(b'x'):016x}"
    columns = {"sample_id": [digits, digits], "item": ["x", "x"], "is_new": [True, False], "batch": [0, 1]}
    run.record("samples", columns, 2)
    assert run.book.samples(unique=True)["times_seen"].to_pylist() == [2]
    run.log_samples(["x", "y"])
    table = run.book.samples(unique=True)
    assert dict(zip(table["item"].to_pylist(), table["times_seen"].to_pylist(), strict=True)) == {"x": 3, "y": 1}
    run.finish()


def test_columns_may_be_lists_arrays_single_values_or_dicts_of_them(notebook: Any, samples: Any) -> None:
    samples(
        ["a", "b"],
        group=[4, 4],
        advantage=np.array([0.5, -0.5], np.float32),
        source="live",
        rewards={"format": [1.0, 0.0], "length": np.array([3, 4])},
        tokens=[[1, 2], [3]],
    )
    assert notebook.columns(
        "samples", "group", "advantage", "source", "rewards/format", "rewards/length", "tokens"
    ) == [
        (4, 0.5, "live", 1.0, 3, [1, 2]),
        (4, -0.5, "live", 0.0, 4, [3]),
    ]


def test_clocks_among_the_columns_are_clocks_for_all_or_for_each(notebook: Any, samples: Any) -> None:
    samples(["a", "b"], policy_version=[3, 4], env_step=100)
    assert notebook.columns("samples", "clock:policy_version", "clock:env_step", "policy_version") == [
        (3, 100, None),
        (4, 100, None),
    ]


def test_a_column_of_another_length_is_named_and_what_fits_is_kept(notebook: Any, samples: Any) -> None:
    samples(["a", "b", "c"], short=[1], long=np.arange(5))
    assert notebook.columns("samples", "short", "long") == [(1, 0), (None, 1), (None, 2)]
    assert notebook.counts == {"sample_columns": 2}
    assert "short=" in notebook.messages["sample_columns"]


def test_values_that_cannot_be_stored_are_named_and_the_rest_is_kept(notebook: Any, samples: Any) -> None:
    samples(["a", "b"], judge=[object(), 1], x=[1, 2])
    assert notebook.columns("samples", "judge", "x") == [(None, 1), (1, 2)]
    assert notebook.counts == {"unstorable/judge": 1}


def test_a_column_named_like_one_of_our_own_is_kept_under_another_name(notebook: Any, samples: Any) -> None:
    samples(["a"], batch=[9])
    assert notebook.columns("samples", "batch", "given/batch") == [(0, 9)]


@dataclass
class Prompt:
    text: str
    turns: list[str]


@pytest.mark.parametrize(
    ("item", "twin", "other"),
    [
        (["C", "O"], ("C", "O"), ["O", "C"]),
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, {"a": 1, "b": [3]}),
        (np.arange(3), np.arange(3), np.arange(3.0)),
        ({1, 2}, {2, 1}, {1, 3}),
        (Prompt("a", ["b"]), Prompt("a", ["b"]), Prompt("a", ["c"])),
        (b"ab", bytearray(b"ab"), b"ac"),
        (0.0, -0.0, 0.5),
        (float("nan"), float("nan"), float("inf")),
        (5, 5, "5"),
        (None, None, "None"),
    ],
)
def test_unhashable_items_are_known_by_their_content(samples: Any, item: Any, twin: Any, other: Any) -> None:
    assert samples([item, twin, other]).new == [True, False, True]


def test_structured_items_are_kept_as_json(notebook: Any, samples: Any) -> None:
    samples([{"role": "user", "content": "hé"}, "plain", np.array([1, 2])])
    assert notebook.columns("samples", "item", "item_type") == [
        ('{"role": "user", "content": "hé"}', "json"),
        ("plain", None),
        ("[1, 2]", "json"),
    ]


def test_text_that_is_no_utf8_keeps_its_bytes(notebook: Any, samples: Any) -> None:
    assert samples(["a\ud800b", b"\xff\xfe", "a\ud800b"]).new == [True, True, False]
    rows = notebook.table("samples")
    assert (rows[0]["item"], rows[0]["item_raw"]) == ("a\\ud800b", b"a\xed\xa0\x80b")
    assert (rows[1]["item"], rows[1]["item_raw"], rows[1]["item_type"]) == ("\\xff\\xfe", b"\xff\xfe", "bytes")


def test_an_item_of_ten_megabytes_lies_in_a_file_of_its_own(notebook: Any, samples: Any) -> None:
    long = "x" * 10_000_000
    assert samples([long, "short", long]).new == [True, True, False]
    first = notebook.table("samples")[0]
    assert first["item"] == "x" * 1000
    assert first["item_size"] == 10_000_000
    assert (notebook.folder / first["item_path"]).read_text() == long
    assert notebook.table("samples")[2]["item_path"] == first["item_path"]
    assert notebook.counts == {}


def test_beyond_the_stated_limit_only_the_beginning_of_an_item_is_kept(notebook: Any) -> None:
    log = SampleLog(notebook, inline_bytes=100, apart_bytes=1000)
    log.log_samples(notebook, ["y" * 1001])
    row = notebook.table("samples")[0]
    assert (row.get("item_path"), row["item_size"], len(row["item"])) == (None, 1001, 1000)
    assert notebook.counts == {"item_too_large": 1}


def test_large_batches_are_cut_into_frames_that_are_not(notebook: Any, samples: Any) -> None:
    samples([f"{i}" for i in range(10_000)], reward=np.arange(10_000))
    samples(["z" * 200_000 + str(i) for i in range(50)])
    sizes = [n for table, _, n in notebook.frames if table == "samples"]
    assert sizes[:3] == [4096, 4096, 1808]
    assert max(sizes[3:]) <= 20
    assert [row["reward"] for row in notebook.table("samples")[:10_000]] == list(range(10_000))


def test_items_without_content_always_count_as_new(notebook: Any, samples: Any) -> None:
    thing = object()
    assert samples([thing, thing]).new == [True, True]
    assert notebook.counts == {"sample_without_content": 2}


def test_batches_come_in_any_form(samples: Any) -> None:
    assert samples([]).new == []
    assert samples("one text").count == 1
    assert samples({"a": 1}).count == 1
    assert samples(str(i) for i in range(3)).count == 3
    assert samples(np.array(["p", "q"])).new == [True, True]
    assert samples(np.array([[1, 2], [1, 2], [3, 4]])).new == [True, False, True]
    assert samples(5).count == 1


def test_a_failure_inside_never_reaches_the_loop(notebook: Any, samples: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(notebook, "record", fail)
    assert samples(["a", "b"]).new == [False, False]
    assert notebook.counts == {"samples": 1}


def test_what_was_seen_survives_the_process(notebook: Any, samples: Any) -> None:
    samples(["a", "b"])
    again = SampleLog(notebook)
    logged = again.log_samples(notebook, ["b", "c"])
    assert (logged.new, logged.batch) == ([False, True], 1)
    assert notebook.table("samples")[-2]["first_seen"] == 0


def test_a_torn_end_of_the_file_costs_only_its_block(notebook: Any, samples: Any) -> None:
    samples(["a"])
    samples(["b"])
    (path,) = (notebook.folder / "data" / "seen").iterdir()
    path.write_bytes(path.read_bytes()[:-3])
    assert SampleLog(notebook).log_samples(notebook, ["a", "b"]).new == [False, True]


def test_what_a_rewind_abandoned_was_not_seen(notebook: Any) -> None:
    log = SampleLog(notebook)
    notebook.clock(env_step=1)
    log.log_samples(notebook, ["kept"])
    notebook.clock(env_step=2)
    log.log_samples(notebook, ["abandoned"])
    notebook.rewind(env_step=1)
    assert log.log_samples(notebook, ["kept", "abandoned"]).new == [False, True]


def test_a_full_disk_costs_the_memory_of_the_next_process_only(
    notebook: Any, samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollbook.capture.samples import seen_file as _seen_file

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_seen_file.os, "write", full)
    assert samples(["a", "a"]).new == [True, False]
    assert notebook.counts == {"seen_not_kept": 1}


def test_fingerprints_are_the_same_in_every_process() -> None:
    here = [fingerprint("añb".encode()), fingerprint(canonical({"b": [1, 2.5, None], "a": ("x", b"y")}), b"item")]
    program = (
        "from rollbook.values.content import *; import json;"
        "print(json.dumps([fingerprint('a\\u00f1b'.encode()),"
        "fingerprint(canonical({'a': ['x', b'y'], 'b': (1, 2.5, None)}), b'item')]))"
    )
    src = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONPATH": src, "PYTHONHASHSEED": "7"}
    )
    assert json.loads(done.stdout) == here
    assert here == [2078209180510747050, 8052670426853081462]  # and in every version of rollbook: they lie in files


# -- the set


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40), max_size=300), st.integers(1, 100))
@example([*range(60), *range(60)], 100)
def test_the_set_is_exact_up_to_its_limit_and_never_forgets(keys: list[int], limit: int) -> None:
    seen, truth = Seen(exact=limit, filter_bytes=1024), set()
    for key in keys:
        was_new = seen.add(key) == -1
        key = key or 1
        if len(truth) < limit or key in truth:
            assert was_new == (key not in truth)
        truth.add(key)


def test_the_filter_keeps_its_stated_error() -> None:
    rng = np.random.default_rng(1)
    seen = Seen(exact=1000, filter_bytes=1 << 14)
    first = rng.integers(0, 2**64, 21_000, dtype=np.uint64).tolist()
    for key in first:
        seen.add(key)
    assert all(seen.add(key) != -1 for key in first)
    error = seen.error
    fresh = rng.integers(0, 2**64, 4000, dtype=np.uint64).tolist()
    wrong = sum(seen.add(key) == -2 for key in fresh) / 4000
    assert 0.5 * error < wrong < 2.5 * seen.error
    assert seen.bytes < 100_000


def test_exact_always_distinguishes_all_in_tables_that_are_never_moved() -> None:
    seen = Seen(exact=None)
    monkey = list(range(1, 1_100_000))
    scattered = [(key * 0x9E3779B97F4A7C15) & (2**64 - 1) for key in monkey]
    assert sum(seen.add(key, 7) == -1 for key in scattered) == len(scattered)
    assert {seen.add(key) for key in scattered[::1000]} == {7}
    assert seen.error < 1e-12


def test_a_limit_that_is_none_is_refused(notebook: Any) -> None:
    with pytest.raises(BadInput, match="'sometimes'"):
        SampleLog(notebook, exact="sometimes")


def test_passing_the_exact_limit_is_reported_once(notebook: Any) -> None:
    log = SampleLog(notebook, exact=5)
    for _ in range(3):
        log.log_samples(notebook, [str(i) for i in range(10)])
    assert notebook.counts == {"seen_filter": 1}
    assert log.seen.count == 10


def test_asking_whether_an_item_was_seen_takes_nothing_in() -> None:
    seen = Seen(exact=100, filter_bytes=4096)
    rng = np.random.default_rng(5)
    prints = [0, *(int(p) for p in rng.integers(1, 2**63, 400))]
    for key in prints[:200]:
        seen.add(key)
    assert seen.filtered > 0
    count = seen.count
    assert all(key in seen for key in prints[:200])
    assert sum(key in seen for key in prints[200:]) < 5, "the filter's error is far below a percent here"
    assert seen.count == count
    assert [key for key in prints[200:] if key not in seen and seen.add(key) != -1] == []


def test_a_log_knows_what_it_has_seen_also_after_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    options: dict[str, Any] = {"dir": tmp_path, "sinks": [], "keeper": "inline"}
    with rollbook.init("p", "n", **options) as run:
        run.log_samples(["a", b"a", {"prompt": [1, 2]}])
        assert (run.samples.is_seen("a"), run.samples.is_seen("b"), run.samples.unique()) == (True, False, 3)
    with rollbook.init("p", "n", resume="must", **options) as run:
        assert run.samples.unique() == 3
        assert run.samples.is_seen({"prompt": (1, 2)})
        assert not run.samples.is_seen(object()), "what shows no content of its own was never seen"
