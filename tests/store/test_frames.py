"""Frames: what goes in comes out, odd data never raises, hostile bytes never hurt."""

from __future__ import annotations

import array
import dataclasses
import pathlib
import struct
import subprocess
import sys

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.errors import Damaged
from rollbook.journal.frames import decode, encode
from rollbook.values.raw_array import RawArray

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=8), PLAIN, max_size=5))
def test_plain_data_comes_back_as_it_went_in(payload: dict[str, object]) -> None:
    data, problems = encode(payload)
    assert problems == []
    assert decode(data) == payload


@pytest.mark.parametrize(
    "dtype", ["<f8", "<f4", "<f2", "<i8", "<i2", "|i1", "|u1", "<u8", "|b1", "<c8", "<c16", "<M8[ns]", ">f8", ">i4"]
)
@pytest.mark.parametrize("shape", [(3,), (2, 3), (0,), (2, 0, 4)])
def test_arrays_come_back_with_their_type_and_shape(dtype: str, shape: tuple[int, ...]) -> None:
    given_array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    back = decode(encode({"x": given_array})[0])["x"]
    assert back.shape == shape
    assert back.to_numpy().dtype == given_array.dtype.newbyteorder("<")
    np.testing.assert_array_equal(back.to_numpy(), given_array)
    assert not back.to_numpy().flags.writeable


def test_arrays_are_read_without_numpy_too() -> None:
    back = decode(encode({"x": np.array([[1.5, 2.5], [3.5, np.inf]])})[0])["x"]
    assert back.flat() == (1.5, 2.5, 3.5, float("inf"))
    assert [row.flat() for row in back.rows()] == [(1.5, 2.5), (3.5, float("inf"))]
    assert decode(encode({"x": np.array([True, False])})[0])["x"].rows() == [True, False]
    assert decode(encode({"x": np.array([1 + 2j])})[0])["x"].flat() == ((1.0, 2.0),)


def test_transposed_arrays_are_stored_in_c_order() -> None:
    given_array = np.arange(6.0).reshape(2, 3).T
    np.testing.assert_array_equal(decode(encode({"x": given_array})[0])["x"].to_numpy(), given_array)


def test_the_standard_librarys_array_is_an_array() -> None:
    back = decode(encode({"x": array.array("f", [1, 2]), "y": array.array("H", [7])})[0])
    assert back["x"] == RawArray("<f4", (2,), struct.pack("<2f", 1, 2))
    assert back["y"].flat() == (7,)


def test_numpy_scalars_become_numbers() -> None:
    payload = {"a": np.float64(1.5), "b": np.float32(2), "c": np.int8(-3), "d": np.bool_(True), "e": np.str_("t")}
    data, problems = encode(payload)
    assert (decode(data), problems) == ({"a": 1.5, "b": 2.0, "c": -3, "d": True, "e": "t"}, [])
    assert decode(encode({"x": np.longdouble(2.5), "y": np.array(4)})[0]) == {"x": 2.5, "y": 4}


def test_integers_of_any_size_are_exact() -> None:
    numbers = [2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400, -(10**400)]
    assert decode(encode({"n": numbers})[0])["n"] == numbers


class Unhelpful:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@dataclasses.dataclass
class Point:
    x: int


def test_odd_objects_are_kept_as_something_readable_and_named() -> None:
    loop: list[object] = [1]
    loop.append(loop)
    deep: list[object] = []
    for _ in range(500):
        deep = [deep]
    payload = {
        "surrogate": "a\udc80b",
        "object": object,
        "unhelpful": Unhelpful(),
        "loop": loop,
        "deep": deep,
        "path": pathlib.PurePosixPath("a/b"),
        "point": Point(3),
        (1, 2): {1, 2},
        "huge": 10**100_000,
    }
    data, problems = encode(payload)
    back = decode(data)
    assert back["surrogate"] == "a\\udc80b"
    assert back["object"] == "<class 'object'>"
    assert "Unhelpful" in back["unhelpful"]
    assert back["loop"] == [1, "<contains itself>"]
    assert back["path"] == "a/b"
    assert back["point"] == {"x": 3}
    assert back["(1, 2)"] == [1, 2]
    assert "bits" in back["huge"]
    assert len(problems) >= 5
    assert any("surrogate" in p for p in problems)
    assert any("loop" in p for p in problems)


def test_structured_and_object_arrays_are_kept_as_lists() -> None:
    payload = {"s": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]), "o": np.array([1, "x", None], dtype=object)}
    assert decode(encode(payload)[0]) == {"s": [[1, 2.0]], "o": [1, "x", None]}


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_decoded_never_worse(data: bytes) -> None:
    try:
        assert isinstance(decode(data), dict)
    except Damaged:
        pass


@given(st.data())
def test_a_flipped_bit_is_refused_or_decoded_never_worse(data: st.DataObject) -> None:
    good = bytearray(encode({"table": "x", "n": 2, "columns": {"a": np.arange(2.0), "b": [1, 2**70]}})[0])
    at = data.draw(st.integers(0, len(good) * 8 - 1))
    good[at // 8] ^= 1 << at % 8
    try:
        for column in decode(bytes(good)).get("columns", {}).values():
            if isinstance(column, RawArray):
                column.to_numpy()
                column.flat()
    except (Damaged, AttributeError):
        pass


@pytest.mark.parametrize(
    "hostile",
    [
        b"\xdd\xff\xff\xff\xff",  # a list of four billion
        b"\x91" * 200_000 + b"\xc0",  # nests without end
        msgspec.msgpack.encode({"x": msgspec.msgpack.Ext(1, b"|O|3|" + b"\0" * 24)}),
        msgspec.msgpack.encode({"x": msgspec.msgpack.Ext(1, b"<f8|-1|")}),
        msgspec.msgpack.encode({"x": msgspec.msgpack.Ext(1, b"<f8|9999999999,9999999999|")}),
        msgspec.msgpack.encode({"x": msgspec.msgpack.Ext(1, b"<f8|9999999999,0|")}),  # unfolds to rows without end
        msgspec.msgpack.encode({"x": msgspec.msgpack.Ext(1, b"<f8[ns]|1|" + b"\0" * 8)}),
        msgspec.msgpack.encode({"x": msgspec.msgpack.Ext(2, b"1e5")}),
        msgspec.msgpack.encode({"x": msgspec.msgpack.Ext(2, b"9" * 100_000)}),
        msgspec.msgpack.encode([1, 2]),
    ],
)
def test_hostile_frames_are_refused_by_name(hostile: bytes) -> None:
    with pytest.raises(Damaged):
        decode(hostile)


def test_frames_need_no_numpy() -> None:
    code = (
        "import sys; from rollbook.journal.frames import encode, decode; import array;"
        "decode(encode({'x': array.array('d', [1.0])})[0])['x'].flat();"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
