"""The way from other people's values to plain ones: one walker, one scalar, one host array."""

from __future__ import annotations

import math
import subprocess
import sys
from argparse import Namespace
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.adapters._plain import JsonData, described
from rollbook.capture.storable import UNSTORABLE, plain
from rollbook.run.origin.config import named_parts, where
from rollbook.values.arrays import array_or_none, host_array, host_tensor
from rollbook.values.content import fingerprint_of
from rollbook.values.describe import histogram_columns
from rollbook.values.devices import fetch
from rollbook.values.walk import Walk


class Tensor:
    """As much of a torch tensor as anybody here looks at: a graph, a device, a type that numpy may lack."""

    def __init__(self, numbers: Any, dtype: str = "torch.float32", device: str = "cpu", graph: bool = False) -> None:
        self.numbers, self.dtype, self.device, self.graph = np.asarray(numbers, np.float32), dtype, device, graph

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape

    def size(self) -> tuple[int, ...]:
        return self.numbers.shape

    def numel(self) -> int:
        return int(self.numbers.size)

    def _like(self, **changed: Any) -> Tensor:
        return Tensor(**{**self.__dict__, **changed})

    def detach(self) -> Tensor:
        return self._like(graph=False)

    def cpu(self) -> Tensor:
        return self._like(device="cpu")

    def float(self) -> Tensor:
        return self._like(dtype="torch.float32")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.graph:
            raise RuntimeError("it requires grad")
        if self.device != "cpu":
            raise TypeError("it lies on a device")
        if self.dtype.endswith("bfloat16"):
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.numbers


AWKWARD = Tensor([[1.5, 2.5]], "torch.bfloat16", "cuda:0", graph=True)


def test_a_tensor_with_a_graph_on_a_device_in_bfloat16_is_an_array_wherever_one_is_taken(
    tmp_path: Any,
) -> None:
    assert host_array(AWKWARD).tolist() == [[1.5, 2.5]]
    assert array_or_none(AWKWARD).tolist() == [[1.5, 2.5]]
    assert plain({"obs": AWKWARD}) == {"obs": [[1.5, 2.5]]}
    assert histogram_columns(AWKWARD) == {"values": [[1.5, 2.5]]}
    assert [array.tolist() for array in fetch([AWKWARD])] == [[[1.5, 2.5]]]
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline", strict=True) as run:
        run.log_histogram("weights", AWKWARD)
        run.log_many({"x": Tensor([1.0, 2.0], "torch.bfloat16", "cuda:0", graph=True)}, env_step=[1, 2])
    assert run.book.metrics(["x"])["x"].to_pylist() == [1.0, 2.0]


def test_what_is_no_tensor_is_handed_on_as_it_is() -> None:
    value = {"get": 1}
    assert host_tensor(value) is value
    assert array_or_none([1.0]) is None
    assert array_or_none(3.0) is None
    assert array_or_none(np.array([object()])) is None


def test_arrays_of_objects_have_the_same_fingerprint_in_every_process() -> None:
    code = (
        "import numpy as np\nfrom rollbook.values.content import fingerprint_of\n"
        "print(fingerprint_of(np.array(['a', 1, None], dtype=object)))"
    )
    said = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(2)}
    assert said == {f"{fingerprint_of(np.array(['a', 1, None], dtype=object))}\n"}


def test_a_value_is_stored_as_a_whole_or_not_at_all() -> None:
    pair = namedtuple("pair", "a b")
    assert plain({1: (1, np.float32(2)), "s": {3}, "p": pair(1, [b"x"])}) == {
        "1": [1, 2.0],
        "s": [3],
        "p": {"a": 1, "b": [b"x"]},
    }
    assert plain({"fine": 1, "odd": [object()]}) is UNSTORABLE
    around: list[Any] = []
    around.append(around)
    assert plain(around) is UNSTORABLE
    deep: Any = 1
    for _ in range(20):
        deep = [deep]
    assert plain(deep) is UNSTORABLE


def test_the_same_object_twice_is_no_circle() -> None:
    shared = [1]
    assert plain({"a": shared, "b": [shared, shared]}) == {"a": [1], "b": [[1], [1]]}


def test_json_data_has_no_number_that_json_lacks_and_names_the_first_odd_value() -> None:
    walk, odd = JsonData(), object()
    assert walk({"x": [math.nan, 1], "y": np.array([math.inf, 2.0]), "z": [odd, Ellipsis]}) == {
        "x": [None, 1],
        "y": [None, 2.0],
        "z": [repr(odd), "Ellipsis"],
    }
    assert walk.odd is odd
    assert JsonData()(np.int64(3)) == 3


def test_a_configuration_is_described_without_addresses() -> None:
    said = described(
        {"kind": dict, "make": test_the_same_object_twice_is_no_circle, "net": object(), "lr": np.float64(1)}
    )
    assert said["kind"] == "builtins.dict"
    assert said["make"].endswith(".test_the_same_object_twice_is_no_circle")
    assert " at 0x" not in said["net"]
    assert said["lr"] == 1.0


def test_whatever_is_made_of_named_values_shows_them() -> None:
    @dataclass
    class Net:
        sizes: tuple[int, ...] = (64, 64)

    assert named_parts(Net()) == [("sizes", (64, 64))]
    assert named_parts(Namespace(lr=1)) == [("lr", 1)]
    assert named_parts({"a": 1}) == [("a", 1)]
    assert named_parts(Net) is None
    assert named_parts([1]) is None


def test_a_walk_says_where_it_stands() -> None:
    class Places(Walk):
        def atom(self, value: Any, path: Any) -> Any:
            return where(path)

    assert Places()({"net": {"sizes": [64, 64]}}) == {"net": {"sizes": ["net.sizes.0", "net.sizes.1"]}}


def test_what_somebody_elses_accessor_raises_in_a_signal_handler_is_not_swallowed() -> None:
    class Interrupting:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        array_or_none(Interrupting())
