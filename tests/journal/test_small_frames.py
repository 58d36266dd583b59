"""Small frames are decoded without msgspec: as msgspec decodes them, or not at all."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rollbook.journal.small_frames import decode_small

CELLS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner, max_size=20),
    max_leaves=30,
)


@given(st.dictionaries(st.text(), CELLS))
def test_a_small_frame_is_decoded_as_msgspec_decodes_it(payload):
    assert decode_small(msgspec.msgpack.encode(payload)) == payload


@given(st.dictionaries(st.text(), CELLS), st.integers(0, 10_000), st.integers(0, 255))
def test_a_damaged_frame_is_left_to_msgspec_or_means_the_same(payload, at, byte):
    data = bytearray(msgspec.msgpack.encode(payload))
    data[at % len(data)] = byte
    small = decode_small(bytes(data))
    if small is not None:
        assert repr(small) == repr(msgspec.msgpack.decode(bytes(data)))


def test_what_is_no_plain_map_is_left_to_msgspec():
    encode = msgspec.msgpack.encode
    for payload in ({"an array": msgspec.msgpack.Ext(1, b"x")}, {1: 2}, [1, 2], "text"):
        assert decode_small(encode(payload)) is None
    assert decode_small(encode({"whole": 1})[:-1]) is None
    assert decode_small(encode({"whole": 1}) + b"\0") is None
    assert decode_small(b"") is None
