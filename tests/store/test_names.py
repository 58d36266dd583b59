"""Every name that a key can have is read alike, live and sealed, whatever other keys stand beside it."""

from __future__ import annotations

import string
import tempfile
from pathlib import Path
from typing import Any

import pytest
from fake_writer import FakeWriter, make_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rollbook
from cases import examples
from rollbook.book.book import Book
from rollbook.schema.clocks import STANDARD
from rollbook.schema.run_files import RESERVED, value_name
from rollbook.storage.sealing.folder import seal

ODD = st.one_of(
    st.sampled_from(
        [*RESERVED, "key", "type", "value", "integer", "digits", "inferred", "name", "loss", '"', "a b", "é"]
    ),
    st.text(alphabet=string.ascii_letters + string.punctuation + " é\u200b", min_size=1, max_size=12),
)
NAMES = st.lists(
    st.tuples(st.integers(0, 3), ODD).map(lambda parts: "value/" * parts[0] + parts[1]),
    min_size=1,
    max_size=6,
    unique=True,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(keys=st.lists(st.one_of(NAMES.map(lambda names: names[0]), st.sampled_from(STANDARD)), unique=True))
def test_no_two_keys_come_to_one_column(keys: list[str]) -> None:
    assert len({value_name(key, STANDARD) for key in keys}) == len(keys)


def _rows(book: Book) -> dict[str, Any]:
    table = book.metrics()
    return {name: table[name].to_pylist() for name in table.column_names if name != "time"}


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.too_slow])
@given(keys=NAMES, final=st.booleans())
def test_live_rows_and_sealed_rows_of_odd_names_are_the_same(keys: list[str], final: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = make_run(Path(folder))
        writer = FakeWriter(path)
        lane = writer.lane()
        stream = lane.stream(*keys)
        for step in range(12):
            values = [float(step + i) for i in range(len(keys))]
            if step < 4:  # rare rows, in long form
                lane.rare(dict(zip(keys, values, strict=True)), env_step=step)
            else:
                stream.log(*values, env_step=step)
        live, latest = _rows(Book(path)), Book(path).latest()
        single = {key: Book(path).metrics([key], x="env_step") for key in keys}
        writer.close()
        seal(path, final=final, take_over=True)
        assert _rows(Book(path)) == live
        assert Book(path).latest().keys() == latest.keys()
        assert len(live) == len(keys) + 1
        for place, key in enumerate(keys):
            values = [float(step + place) for step in range(12)]
            for table in (single[key], Book(path).metrics([key], x="env_step")):
                (column,) = (n for n in table.column_names if n not in ("time", "env_step", "inferred"))
                assert table[column].to_pylist() == values
                assert column in (key, f"value/{key}")


def test_a_key_and_its_namesake_under_value_are_read_while_the_run_is_alive(tmp_path: Path) -> None:
    with rollbook.init("p", "r", dir=str(tmp_path), sinks=[], keeper="import") as run:
        for step in range(50):
            run.log({"loss": 1.0, "value/loss": 2.0}, env_step=step)
        table = Book(run.folder).metrics()
        assert set(table["loss"].to_pylist()) == {1.0}
        assert set(table["value/loss"].to_pylist()) == {2.0}
        assert Book(run.folder).latest()["value/loss"][0] == 2.0
        assert Book(run.folder).sql('select avg("value/loss"), avg(loss) from metrics').fetchall() == [(2.0, 1.0)]


def test_a_key_with_a_lone_surrogate_does_not_keep_other_keys_from_being_read(tmp_path: Path) -> None:
    with rollbook.init("p", "r", dir=str(tmp_path), sinks=[], keeper="import") as run:
        for _ in range(20):
            run.log({"ok": 1.0, "bad\ud800": 2.0})
        book = Book(run.folder)
        (other,) = set(book.keys()) - {"ok"}
        other.encode()
        assert set(book.metrics()[other].to_pylist()) == {2.0}
    assert set(Book(run.folder).metrics()["ok"].to_pylist()) == {1.0}


@pytest.mark.parametrize("key", ["value/epoch", "value/time"])
def test_a_key_is_found_under_the_name_it_was_logged_with(tmp_path: Path, key: str) -> None:
    with rollbook.init("p", "r", dir=str(tmp_path), sinks=[], keeper="import") as run:
        for _ in range(20):
            run.log({key: 3.0})
    assert set(Book(run.folder).metrics([key])[key].to_pylist()) == {3.0}
