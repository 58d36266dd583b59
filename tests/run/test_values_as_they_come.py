"""Keys, clocks and values in the forms in which programs have them: one rule, whatever was logged before."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.schema.clocks import as_clock
from rollbook.values import flatten, key_of

pd = pytest.importorskip("pandas")


class Colour(str, enum.Enum):  # noqa: UP042 that is what programs have
    RED = "red"


class Part(enum.Enum):
    ACTOR = "actor"
    ONE = 1


class Word(enum.StrEnum):
    BLUE = "blue"


class Refuses:
    """An object whose every accessor raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise ValueError("no")

    __str__ = __index__ = __float__ = __eq__ = __ne__ = __bool__ = __repr__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


@pytest.fixture
def run(tmp_path: Path, nothing_is_sealed: None) -> Any:
    with rollbook.init("p", "r", dir=tmp_path, sinks=(), keeper="inline", rules=()) as run:
        yield run


TEXTS: dict[Any, str] = {
    Colour.RED: "red", Part.ACTOR: "actor", Part.ONE: "1", Word.BLUE: "blue", np.str_("text"): "text", np.int64(4): "4",
    2: "2", b"bytes": "bytes", None: "None", (1, "a"): "(1, 'a')", 0.5: "0.5",
}  # fmt: skip


@pytest.mark.parametrize("plain_first", [False, True])
@pytest.mark.parametrize("key", list(TEXTS), ids=list(TEXTS.values()))
def test_a_key_is_the_same_text_by_every_door_and_whatever_was_logged_before(
    run: Any, key: Any, plain_first: bool
) -> None:
    text = TEXTS[key]
    for _ in range(12):  # enough for the fast way
        for name in (text, key) if plain_first else (key, text):
            run.log({name: 1.0, "beside": 1.0})
    run.log({"nest": {key: 1.0}})
    run.log_many({key: [1.0, 2.0]})
    run.store({key: 1.0})
    run.dump()
    run.config[key] = run.summary[key] = 1
    run.log_histogram(key, [1.0])
    if isinstance(key, str):
        run.scope(key).log({"below": 1.0})
    run.finish()
    expected = {text, "beside", f"nest/{text}", *(f"{text}/{part}" for part in ("mean", "median", "n", "std"))}
    assert set(run.book.keys()) == expected | ({f"{text}/below"} if isinstance(key, str) else set())
    assert run.book.metrics([text]).num_rows == 24 + 2 + 1
    assert run.book.histograms().column("key").to_pylist() == [text]
    assert text in {str(name) for name in run.book.config} or key is None or isinstance(key, bytes)
    assert text in run.book.summary or key is None or isinstance(key, bytes)


@pytest.mark.parametrize("order", [[1, True, 1.0], [1.0, 1, True], [True, 1.0, 1]])
def test_numbers_that_are_equal_are_keys_of_their_own(run: Any, order: list[Any]) -> None:
    for _ in range(12):
        for key in order:
            run.log({key: 1.0})
    assert set(run.book.keys()) == {"1", "True", "1.0"}
    assert all(run.book.metrics([key]).num_rows == 12 for key in ("1", "True", "1.0"))


def test_a_series_of_pandas_is_an_array_and_a_frame_one_for_each_column(run: Any) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan]})
    run.log({"s": pd.Series(range(1_000)), "frame": frame, "one": pd.Series([5.0]), "labels": pd.Index([1, 2])})
    run.log({"gaps": pd.Series([1, None], dtype="Int64"), "yes": pd.Series([True, False]), "none": pd.NA})
    assert set(run.book.keys()) == {"one"}
    found = {row["key"]: row["values"] for row in run.book.histograms().to_pylist()}
    assert found["s"] == list(range(1_000))
    assert [str(value) for value in found["gaps"]] == ["1.0", "nan"]
    assert found["yes"] == [1.0, 0.0]
    assert set(found) == {"s", "frame/a", "frame/b", "labels", "gaps", "yes"}
    assert run.bill()["drops"] == {}


@pytest.mark.parametrize(
    "logged",
    [
        np.array([True, False]),
        [True, False],
        np.array([[True], [False]]),
        (np.True_, np.False_),
        np.array([1, 0], "u1"),
    ],
)
def test_an_array_of_any_kind_leaves_the_others_readable(run: Any, logged: Any) -> None:
    run.log_histogram("w", [0.5, 1.5])
    run.log({"dones": logged})
    run.log({"many": np.ones(5_000, bool)})
    run.record("histograms", {"key": ["old"], "values": [[True, False]]})  # as an earlier version wrote them
    book = run.book
    for table in (book.histograms(), book.histograms(bins=4)):
        assert table.column("key").to_pylist() == ["w", "dones", "many", "old"]
    assert book.histograms("dones").column("values").to_pylist() == [[1.0, 0.0]]
    assert book.histograms("w").column("values").to_pylist() == [[0.5, 1.5]]
    assert len(book.sql("select * from histograms").fetchall()) == 4


ODD: list[Any] = [
    np.array([1, 2]), [1, 2], (), "7", b"7", pd.NA, pd.NaT, float("nan"), float("inf"), 1.5, 2**70, {"a": 1}, object(),
    np.array(["a"]), 1 + 2j, Refuses(), np.array([1.5]), pd.Series([1, 2]), pd.Timestamp("2020-01-01"),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(ODD)))
def test_a_reading_that_is_none_costs_nothing_of_the_row_and_is_kept(run: Any, place: int) -> None:
    odd = ODD[place]
    assert as_clock(odd) is None
    run.log({"loss": 1.0}, env_step=odd, epoch=3)
    run.log({"loss": 2.0})
    run.clock(step=odd)
    run.log_episode(return_=5.0, env_step=odd)
    run.log_text("note", "text", env_step=odd)
    run.log_histogram("h", [1.0], env_step=odd)
    run.store({"kept": 1.0}, env_step=odd)
    with run.timer("stage"):
        pass
    book = run.book
    assert [(row["loss"], row["epoch"]) for row in book.metrics(["loss"]).to_pylist()] == [(1.0, 3), (2.0, 3)]
    assert book.episodes().column("return").to_pylist() == [5.0]
    assert {"note"} <= set(book.text().column("key").to_pylist())
    assert "h" in book.histograms().column("key").to_pylist()
    assert run.bill()["names"]["odd_clock"]["env_step"] >= 5
    everything = {*book.keys(), *book.text().column("key").to_pylist(), *book.histograms().column("key").to_pylist()}
    assert {"clock/env_step", "clock/step"} <= everything


@pytest.mark.parametrize("whole", [3, 3.0, np.int64(3), np.float32(3), np.array(3), True])
def test_a_whole_number_in_any_form_is_a_reading(whole: Any) -> None:
    assert as_clock(whole) == int(whole)


def test_members_of_enums_are_values_too(run: Any) -> None:
    run.log({"phase": Part.ACTOR, "colour": Colour.RED, "number": Part.ONE})
    assert run.book.metrics(["number"]).column("number").to_pylist() == [1]
    texts = {row["key"]: row["text"] for row in run.book.text().to_pylist()}
    assert texts == {"phase": "actor", "colour": "red"}
    assert [key_of(key) for key in (Colour.RED, Part.ONE)] == ["red", "1"]
    assert dict(flatten({Colour.RED: {Part.ACTOR: 1}})) == {"red/actor": 1}
