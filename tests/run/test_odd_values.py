"""Values nobody expects: what can be kept is kept, the rest is named, and nothing raises into the loop."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.errors import InvalidName, RollbookWarning, UnknownKey

Start = Callable[..., rollbook.Run]


class Hostile:
    """Raises whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("gotcha")


class HalfMapping:
    """Looks like a mapping, and is none."""

    def keys(self) -> list[str]:
        return ["a"]

    def items(self) -> list[tuple[str, float]]:
        raise RuntimeError("no items")


def meta_tensor(*shape: int) -> Any:
    """A tensor that has no values."""
    return pytest.importorskip("torch").ones(shape, device="meta")


@pytest.mark.parametrize(
    "make",
    [Hostile, lambda: meta_tensor(), lambda: meta_tensor(3), HalfMapping, object, lambda: {1, 2}, lambda: 1 + 2j],
    ids=["raises", "meta scalar", "meta array", "half a mapping", "object", "set", "complex"],
)
def test_one_value_that_cannot_be_kept_costs_no_other(start: Start, make: Callable[[], Any]) -> None:
    odd, run = make(), start()
    with pytest.warns(RollbookWarning):
        run.log({"before": 1.0, "odd": odd, "after": 2.0, "array": [1.0, 2.0], "words": "text"}, env_step=1)
    for _ in range(20):
        run.log({"before": 1.0, "odd": odd, "after": 2.0})
    assert run.bill()["drops"]["unloggable"] == 21
    assert run.book.metrics(["before", "after"]).num_rows == 21
    assert run.book.histograms()["values"].to_pylist() == [[1.0, 2.0]]
    assert run.book.text()["text"].to_pylist() == ["text"]


def test_what_is_logged_as_text_is_text(start: Start) -> None:
    run = start()
    for text in ("plain", 5, None, {"a": 1}):
        run.log_text("t", text)  # type: ignore[arg-type]
    run.note(7)  # type: ignore[arg-type]
    assert run.book.text("t")["text"].to_pylist() == ["plain", "5", "None", "{'a': 1}"]
    assert run.book.text("note")["text"].to_pylist() == ["7"]


@pytest.mark.parametrize("odd", ["abc", None, ["a"], np.array(["a", "b"]), {"a": 1}, np.array([1 + 2j])])
def test_a_distribution_of_no_numbers_is_refused(start: Start, odd: Any) -> None:
    run = start()
    with pytest.warns(RollbookWarning, match="log_histogram"):
        run.log_histogram("h", odd)
    run.log_histogram("h", np.array([1, 2.5], dtype=object))
    assert run.book.histograms()["values"].to_pylist() == [[1.0, 2.5]]


@pytest.mark.parametrize("name", ["", "/", None, 5, "a\nb"])
def test_a_scope_without_a_name_is_refused(start: Start, name: Any) -> None:
    with pytest.raises(InvalidName, match="a scope's name is text"):
        start().scope("train").scope(name)


def test_numbers_of_a_summary_are_numbers(start: Start) -> None:
    run = start()
    run.summary["best"] = np.float32(3)
    run.summary |= {"steps": np.int64(4), "array": np.arange(2)}
    run.summary.update({"gone": 1})
    assert run.summary.popitem() == ("gone", 1)
    run.finish()
    assert run.book.summary.items() >= {"best": 3.0, "steps": 4, "array": [0, 1]}.items()
    assert "gone" not in run.book.summary


def test_a_tensor_of_a_summary_is_a_number(start: Start) -> None:
    run = start()
    run.summary["steps"] = pytest.importorskip("torch").tensor(4)
    assert run.summary["steps"] == 4


def test_a_change_deep_in_the_configuration_is_kept_in_its_files_too(start: Start) -> None:
    run = start(config={"net": {"sizes": [64]}, "n": float("nan")})
    run.write_config_files()
    run.config["net"]["sizes"].append(32)
    run.config |= {"late": 1}
    run.finish()
    assert run.book.config["net"] == {"sizes": [64, 32]}
    names: dict[str, Any] = {"nan": float("nan")}
    exec((run.folder / "total_config.py").read_text(), names)
    assert names["exp_config"]["net"] == {"sizes": [64, 32]}
    assert names["exp_config"]["late"] == 1


def test_an_error_names_hostile_keys_without_driving_the_terminal(start: Start) -> None:
    run = start()
    run.log({"x\x1b[31m": 1.0, "\u202ey": 1.0, **{f"k{i}": 1.0 for i in range(1000)}})
    with pytest.raises(UnknownKey) as caught:
        run.book.metrics(["k"])
    assert str(caught.value).isprintable()
    assert "more" in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_run_json_stays_json_whatever_is_in_it(start: Start) -> None:
    run = start(config={"f": float("inf")}, notes="\x1b[31m", group="g", tags=["a", 3])
    run.summary["odd"] = Hostile()
    run.finish()
    page = json.loads((run.folder / "run.json").read_text())
    assert page["tags"] == ["a", "3"]


def test_a_long_name_makes_no_read_dearer_and_names_that_end_in_nothing_are_distinguished(start: Start) -> None:
    """Names were compared as texts of one width, the longest times the rows (1.2 GB here), and without last NULs."""
    run = start()
    for step in range(300):
        run.log({f"key {step}": float(step)}, env_step=step)
    run.log({"k" * 1_000_000: 1.0, "end": 2.0, "end\0": 3.0}, env_step=300)
    run.finish()
    book = run.book
    reads: list[Callable[[], object]] = [
        book.latest,
        lambda: book.table("metrics"),
        lambda: book.metrics(["key 7", "k" * 1_000_000], x="env_step"),
        lambda: book.at(env_step=300),
        lambda: book.series("key 7", points=10),
    ]
    for read in reads:
        tracemalloc.start()
        read()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 500e6
    assert (book.latest()["end"][0], book.latest()["end\0"][0]) == (2.0, 3.0)
    assert book.metrics(["end", "end\0"]).select(["end", "end\0"]).to_pylist() == [{"end": 2.0, "end\0": 3.0}]
