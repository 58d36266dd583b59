"""Random states: taken, kept as JSON text, and set again."""

from __future__ import annotations

import json
import random
import sys

import numpy as np
import pytest

from rollbook.capture.checkpoints.random_states import dumps, loads, restore, take


def draw() -> tuple[float, float]:
    return random.random(), float(np.random.rand())


def test_the_generators_of_python_and_numpy_go_on_where_they_were() -> None:
    np.random.standard_normal()  # leaves a second number in store
    random.gauss(0, 1)
    text = dumps(take())
    json.loads(text)
    expected = [draw() for _ in range(3)], random.gauss(0, 1), np.random.standard_normal()
    random.seed(0)
    np.random.seed(0)
    assert restore(loads(text)) == []
    assert ([draw() for _ in range(3)], random.gauss(0, 1), np.random.standard_normal()) == expected


def test_named_generators_of_every_kind_go_on_where_they_were() -> None:
    def make(seed: int) -> dict:
        return {
            "pcg": np.random.default_rng(seed),
            "mt": np.random.Generator(np.random.MT19937(seed)),
            "philox": np.random.Generator(np.random.Philox(seed)),
            "sfc": np.random.Generator(np.random.SFC64(seed)),
            "old": np.random.RandomState(seed),
            "python": random.Random(seed),
        }

    generators = make(1)
    for generator in generators.values():
        generator.random()
    text = dumps(take(generators))
    expected = {name: [generator.random() for _ in range(3)] for name, generator in generators.items()}
    others = make(2)
    assert restore(loads(text), others) == []
    assert {name: [generator.random() for _ in range(3)] for name, generator in others.items()} == expected


def test_torchs_generator_goes_on_where_it_was() -> None:
    torch = pytest.importorskip("torch")
    text = dumps(take())
    expected = torch.rand(3).tolist()
    torch.manual_seed(0)
    assert restore(loads(text)) == []
    assert torch.rand(3).tolist() == expected


def test_libraries_that_are_not_loaded_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "numpy", "random"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert take() == {}
    assert not {"torch", "numpy", "random"} & set(sys.modules)


def test_what_cannot_be_set_is_reported_and_the_rest_is_set() -> None:
    states = loads(dumps(take()))
    expected = float(np.random.rand())
    states["python"] = [3, [1], None]
    states["torch_cuda"] = [b"x"] * 99
    problems = restore(states, {"env": np.random.default_rng(0)})
    assert [problem.partition(" could")[0] for problem in problems[:2]] == [
        "the random state of python",
        "the random state of torch on CUDA",
    ]
    assert "'env'" in problems[2]
    assert float(np.random.rand()) == expected


@pytest.mark.parametrize("text", [None, "", "[]", "3"])
def test_no_states_are_no_states(text: str | None) -> None:
    assert loads(text) == {}
    assert restore(loads(text)) == []


def test_a_forged_text_is_refused() -> None:
    for text in ("{", '{"a": {"base64": "AAA=", "dtype": "|O", "shape": [1]}}', '{"a": {"base64": "!"}}'):
        with pytest.raises(ValueError):
            loads(text)
