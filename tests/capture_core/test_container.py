"""The .ckpt file: what goes in comes out, with its types; what is damaged is said to be."""

from __future__ import annotations

import argparse
import io
import math
import random
import types
from collections import OrderedDict, deque, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rollbook.capture.checkpoints import container
from rollbook.errors import BadInput, Damaged, NewerFormat
from rollbook.schema import checkpoint_files


def round_trip(state: Any, folder: Path) -> Any:
    path = folder / "state.ckpt"
    with open(path, "wb") as file:
        container.write(file, state)
    return container.read(path)


def assert_same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()
    elif isinstance(a, np.generic):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()
    elif isinstance(a, dict):
        assert list(map(repr, a)) == list(map(repr, b))
        for x, y in zip(a.values(), b.values(), strict=True):
            assert_same(x, y)
    elif isinstance(a, (list, tuple, deque)):
        assert getattr(a, "maxlen", None) == getattr(b, "maxlen", None)
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert repr(a) == repr(b) or a == b


EVERYTHING = {
    "weights": {"w": np.arange(12, dtype="f4").reshape(3, 4), "b": np.zeros((0, 5)), "scalar": np.array(3.5)},
    "big endian": np.arange(3, dtype=">i2"),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "strided": np.arange(20, dtype="u1")[::3],
    "bools": np.array([True, False]),
    "complex": np.array([1 + 2j], dtype="c8"),
    "half": np.array([1, 2], dtype="f2"),
    "long": np.array([1], dtype=np.longdouble),
    "when": np.array(["2024-01-02"], dtype="M8[ns]"),
    "text array": np.array(["a", "ünï"]),
    "bytes array": np.array([b"abc"]),
    "struct": np.array([(1, [2.0, 3.0])], dtype=[("n", "i4"), ("x", "f8", (2,))]),
    "aligned": np.zeros(2, dtype=np.dtype([("a", "i1"), ("b", [("c", "f8")])], align=True)),
    "numbers": [np.float32(0.1), np.int64(-3), np.bool_(True), np.uint64(2**64 - 1), np.datetime64("2020", "D")],
    "void": np.array([(1, 2.0)], dtype=[("n", "i4"), ("x", "f8")])[0],
    "plain": [None, True, 1, -(2**63), 2**63, -(2**200), 0.1, math.inf, "ünï", "\udce4", b"x", b"y" * 5000, 1j],
    "containers": ((), [], {}, set(), frozenset({1, (2, 3)}), deque([1, 2], maxlen=3), deque(), {"a", "b"}),
    "ordered": OrderedDict(b=1, a=2),
    "keys": {1: "a", (1, "x"): "b", None: "c", 2.5: "d", b"k": "e"},
    "others": [Path("a") / "b", range(2, 9, 3), slice(1, None), bytearray(b"z" * 5000), bytearray(b"z")],
    "spaces": [argparse.Namespace(lr=1), types.SimpleNamespace(net=[1])],
    "generators": [
        np.random.default_rng(3).bit_generator.state,
        np.random.RandomState(3).get_state(legacy=False),
        random.Random(3).getstate(),
    ],
}


@pytest.mark.parametrize("name", EVERYTHING)
def test_what_goes_in_comes_out_with_its_types(name: str, tmp_path: Path) -> None:
    assert_same(round_trip(EVERYTHING[name], tmp_path), EVERYTHING[name])


def test_the_arrays_that_come_back_can_be_written_to(tmp_path: Path) -> None:
    back = round_trip([np.zeros(3)], tmp_path)
    back[0][1] = 5.0
    assert back[0][1] == 5.0


def test_a_generator_goes_on_where_it_was(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    rng.random(5)
    state = round_trip(rng.bit_generator.state, tmp_path)
    other = np.random.default_rng(0)
    other.bit_generator.state = state
    assert rng.random(10).tolist() == other.random(10).tolist()


def test_other_libraries_arrays_come_back_as_numpy_and_named_tuples_as_tuples(tmp_path: Path) -> None:
    class DeviceArray:
        dtype, shape = np.dtype("f4"), (2,)

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.ones(2, "f4")

    State = namedtuple("State", "mu nu")
    back = round_trip({"opt": State(DeviceArray(), 1)}, tmp_path)
    assert_same(back, {"opt": (np.ones(2, "f4"), 1)})


def test_bfloat16_arrays_keep_their_type(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.5, -2.0], dtype=ml_dtypes.bfloat16)
    assert_same(round_trip(array, tmp_path), array)


class Agent:
    pass


@pytest.mark.parametrize(
    ("state", "where"),
    [
        ({"agent": [1, Agent()]}, r"state\['agent'\]\[1\] is a .*Agent"),
        ({"f": test_the_arrays_that_come_back_can_be_written_to}, r"state\['f'\] is a builtins.function"),
        ({"o": np.array([Agent()])}, r"state\['o'\] is an array of Python objects"),
        ({"m": np.ma.masked_array([1, 2], [0, 1])}, r"state\['m'\] is a masked array"),
    ],
)
def test_what_cannot_be_written_is_named_with_its_place(state: Any, where: str) -> None:
    with pytest.raises(BadInput, match=where):
        container.write(io.BytesIO(), state)


def test_a_state_that_contains_itself_or_nests_without_end_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(BadInput, match="contains itself"):
        container.write(io.BytesIO(), ring)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadInput, match="nests too deeply"):
        container.write(io.BytesIO(), deep)


numbers = hnp.integer_dtypes() | hnp.floating_dtypes() | hnp.complex_number_dtypes()
arrays = hnp.arrays(numbers, hnp.array_shapes(min_dims=0, min_side=0))
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | arrays
keys = st.text() | st.integers()
plain = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(keys, inner),
    max_leaves=10,
)


@given(plain)
def test_any_tree_of_plain_values_survives(tmp_path_factory: pytest.TempPathFactory, state: Any) -> None:
    assert_same(round_trip(state, tmp_path_factory.getbasetemp()), state)


def test_a_flipped_or_missing_byte_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    with open(path, "wb") as file:
        container.write(file, {"w": np.arange(50.0), "b": b"x" * 5000, "n": 3})
    whole = path.read_bytes()
    rng = random.Random(1)
    covered = [i for i in range(len(whole)) if i < 36 or i >= 64]
    padding = 64 + 400, 64 + 448  # between the two raw parts
    for at in rng.sample([i for i in covered if not padding[0] <= i < padding[1]], 300):
        broken = bytearray(whole)
        broken[at] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        with pytest.raises((Damaged, NewerFormat)):
            container.read(path)
    for length in (0, 10, 64, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(Damaged):
            container.read(path)


odd = st.none() | st.integers(-(2**63), 2**63) | st.text(max_size=3) | st.binary(max_size=5)
tags = st.sampled_from("ltsfdoagbyqicurkpnm")
forged = st.recursive(odd, lambda inner: st.builds(lambda tag, rest: [tag, *rest], tags | odd, st.lists(inner)))


@given(forged)
def test_a_forged_tree_executes_nothing_and_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, tree: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "forged.ckpt"
    forge(path, {"tree": tree, "blobs": []})
    try:
        container.read(path)
    except Damaged:
        pass


def forge(path: Path, content: Any, version: int = 1) -> None:
    import struct
    import zlib

    import msgspec

    meta = msgspec.msgpack.encode(content)
    head = checkpoint_files.HEAD.pack(checkpoint_files.MAGIC, version, zlib.crc32(meta), 64, len(meta))
    path.write_bytes((head + struct.pack("<I", zlib.crc32(head))).ljust(64, b"\0") + meta)


@pytest.mark.parametrize(
    "content",
    [
        {"tree": ["a", "|O", [1], 0], "blobs": [[64, 8, 0]]},
        {"tree": ["a", "<f8", [2**60], 0], "blobs": [[64, 2**63, 0]]},
        {"tree": ["a", "<f8", [-1], 0], "blobs": [[64, -8, 0]]},
        {"tree": ["a", [["x", "|O"]], [1], 0], "blobs": [[64, 8, 0]]},
        {"tree": ["g", "|O", b"12345678"], "blobs": []},
        {"tree": ["d", ["l"], 1], "blobs": []},
        {"tree": ["posix.system", "true"], "blobs": []},
        {"blobs": []},
        [],
        7,
    ],
)
def test_forged_arrays_and_tags_are_refused(content: Any, tmp_path: Path) -> None:
    forge(tmp_path / "x.ckpt", content)
    with pytest.raises(Damaged):
        container.read(tmp_path / "x.ckpt")


def test_a_later_format_is_refused_by_name(tmp_path: Path) -> None:
    forge(tmp_path / "x.ckpt", {"tree": ["d"], "blobs": []}, version=9)
    with pytest.raises(NewerFormat, match="format 9"):
        container.read(tmp_path / "x.ckpt")
    assert container.is_container(tmp_path / "x.ckpt")
    assert not container.is_container(tmp_path / "gone")
