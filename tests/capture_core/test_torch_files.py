"""Checkpoints that torch wrote: torch reads them with its defaults, and rollbook gives every type back."""

from __future__ import annotations

import argparse
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollbook.capture.checkpoints import torch_files
from rollbook.errors import BadInput, Damaged

torch = pytest.importorskip("torch")

Pair = namedtuple("Pair", "a b")


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple, deque)):
        return len(a) == len(b) and getattr(a, "maxlen", 0) == getattr(b, "maxlen", 0) and all(map(same, a, b))
    if isinstance(a, (argparse.Namespace, types.SimpleNamespace)):
        return same(vars(a), vars(b))
    return bool(a == b)


MIXED = {
    "model": OrderedDict(w=torch.arange(6.0).reshape(2, 3), b=torch.zeros(3, dtype=torch.bfloat16)),
    "norm": {"mean": np.arange(3.0), "var": np.ones((2, 0), "f4"), "count": np.float64(3), "n": np.int32(7)},
    "scalar": np.array(2.5),
    "odd": [
        np.array(["2024"], "M8[D]"),
        np.arange(3, dtype=">f8"),
        np.array(["ü"]),
        np.array([(1, 2.0)], [("i", "i2"), ("x", "f8")]),
        np.zeros((0,), "U3"),
    ],
    "buffer": deque([np.float32(1), torch.ones(2)], maxlen=10),
    "generator": np.random.default_rng(1).bit_generator.state,
    "old": np.random.RandomState(1).get_state(legacy=False),
    "config": argparse.Namespace(lr=1e-3, path=Path("a") / "b"),
    "simple": types.SimpleNamespace(x=np.arange(2)),
    "sets": [{1, 2}, frozenset({"a"}), {(1, 2)}],
    "ints": [2**200, 2**5000, -1],
    "plain": [None, True, "ü", b"b", 1j, 0.5, (1, [2]), range(3)],
    "size": torch.Size([1, 2]),
}


def test_every_part_comes_back_with_its_type(tmp_path: Path) -> None:
    path = tmp_path / "mixed.pth.tar"
    torch_files.save(path, MIXED)
    back = torch_files.load(path)
    for name, value in MIXED.items():
        assert same(back[name], value), name
    back["norm"]["mean"][0] = 5.0  # writable


def test_torch_alone_reads_it_with_its_defaults(tmp_path: Path) -> None:
    path = tmp_path / "mixed.pth.tar"
    torch_files.save(path, MIXED)
    back = torch.load(path)
    assert torch.equal(back["model"]["w"], MIXED["model"]["w"])
    assert torch.equal(back["norm"]["mean"], torch.arange(3.0, dtype=torch.float64))
    assert back["norm"]["n"] == 7
    assert back["config"]["lr"] == 1e-3


def test_a_state_dict_goes_to_torch_untouched(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    optimiser = torch.optim.Adam(model.parameters())
    model(torch.ones(4, 2)).sum().backward()
    optimiser.step()
    path = tmp_path / "sd.pth.tar"
    torch_files.save(path, {"model": model.state_dict(), "optimiser": optimiser.state_dict()})
    back = torch.load(path)
    assert back["model"]._metadata == model.state_dict()._metadata
    model.load_state_dict(back["model"])
    optimiser.load_state_dict(torch_files.load(path)["optimiser"])


def test_dict_subclasses_and_named_tuples_come_back_as_dicts_and_tuples(tmp_path: Path) -> None:
    path = tmp_path / "x.pth.tar"
    state = {"d": defaultdict(list, a=[torch.ones(1)]), "c": Counter("aab"), "p": Pair(torch.ones(1), 2)}
    torch_files.save(path, state)
    for back in (torch.load(path), torch_files.load(path)):
        assert same(back, {"d": {"a": [torch.ones(1)]}, "c": {"a": 2, "b": 1}, "p": (torch.ones(1), 2)})


def test_numpy_keys_become_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.pth.tar"
    torch_files.save(path, {np.int64(3): torch.ones(1), ("a", np.int8(1)): 2})
    assert list(torch.load(path)) == [3, ("a", 1)]


class Agent:
    pass


@pytest.mark.parametrize(
    ("state", "where"),
    [
        ({"w": torch.ones(1), "agent": [Agent()]}, r"state\['agent'\]\[0\] is a .*Agent"),
        ({"w": torch.ones(1), Agent: 1}, "a key of type"),
        ({"w": torch.ones(1), "o": np.array([None])}, "Python objects"),
    ],
)
def test_what_torch_could_only_pickle_is_refused_with_its_place(state: Any, where: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=where):
        torch_files.save(tmp_path / "x.pth.tar", state)


def test_a_state_that_contains_itself_is_refused(tmp_path: Path) -> None:
    ring: dict[str, Any] = {"w": torch.ones(1)}
    ring["again"] = [ring]
    assert torch_files.holds_tensors(ring)
    with pytest.raises(BadInput, match="contains itself"):
        torch_files.save(tmp_path / "x.pth.tar", ring)


def test_a_file_that_would_execute_code_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evil.pth.tar"
    flag = tmp_path / "flag"

    class Evil:
        def __reduce__(self) -> Any:
            return Path.touch, (flag,)

    torch.save({"w": Evil()}, path)
    with pytest.raises(Exception, match=r"weights_only|Weights only"):
        torch_files.load(path)
    assert not flag.exists()


def test_a_record_that_does_not_fit_is_damage(tmp_path: Path) -> None:
    from zipfile import ZipFile

    path = tmp_path / "x.pth.tar"
    torch.save({"w": torch.ones(1)}, path)
    with ZipFile(path, "a") as archive:
        archive.writestr("x.pth/rollbook_types", b"\x93\xa4same\xc0\x81\x00\x91\x01")
    with pytest.raises(Damaged):
        torch_files.load(path)
    assert torch_files.is_torch_file(path)
    path.write_bytes(b"PK not a zip")
    assert not torch_files.is_torch_file(path)


def test_tensors_are_found_however_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    assert torch_files.holds_tensors({"a": [({"b": deque([argparse.Namespace(t=torch.ones(1))])},)]})
    assert not torch_files.holds_tensors({"a": [np.ones(3), "t"]})
    monkeypatch.delitem(sys.modules, "torch")
    assert not torch_files.holds_tensors({"a": object()})
