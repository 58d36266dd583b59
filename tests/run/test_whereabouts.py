"""Where a process is, as its own writer keeps it: of a Ray actor without a word of Ray's about itself."""

from __future__ import annotations

import sys
import warnings
from types import SimpleNamespace

import pytest

from rollbook.run.ranks import whereabouts


class Context:
    worker = SimpleNamespace(mode=1)

    def get_node_id(self) -> str:
        return "n1"

    def get_job_id(self) -> str:
        return "j1"

    def get_actor_id(self) -> str:
        return "a1"

    def get_actor_name(self) -> str:
        return "sampler"

    @property
    def was_current_actor_reconstructed(self) -> bool:
        warnings.warn("actor_id is deprecated", DeprecationWarning, stacklevel=2)
        return True


@pytest.mark.parametrize("filters", ["always", "error"])
def test_an_actor_is_named_and_ray_prints_no_warning(monkeypatch: pytest.MonkeyPatch, filters: str) -> None:
    ray = SimpleNamespace(is_initialized=lambda: True, get_runtime_context=Context, WORKER_MODE=1)
    monkeypatch.setitem(sys.modules, "ray", ray)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter(filters)
        assert whereabouts()["ray"] == {"node": "n1", "job": "j1", "actor": "a1", "name": "sampler", "restarted": True}
    assert heard == []
