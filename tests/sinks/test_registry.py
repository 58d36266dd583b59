from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from rollbook import sinks
from rollbook.errors import BadInput, MissingExtra, UnknownOption
from rollbook.sinks import Csv, Jsonl, Memory, TensorBoard, Terminal, Text, _registry
from rollbook.sinks.filters import Every, Smooth


def test_sinks_of_services_are_not_among_those_that_need_nothing():
    assert {"csv", "jsonl", "tensorboard", "terminal", "text"} <= set(sinks.needs_no_service())
    assert {"mlflow", "neptune", "trackio", "wandb"} <= set(sinks.names()) - set(sinks.needs_no_service())


def test_a_sink_is_made_with_what_belongs_in_front_of_it():
    for name, kind in (("csv", Csv), ("jsonl", Jsonl), ("memory", Memory), ("terminal", Terminal)):
        assert type(sinks.make(name)) is kind
    text, board = sinks.make("text"), sinks.make("tensorboard")
    assert (type(text), type(text.to), text.options) == (Every, Text, {"seconds": 1.0, "per": "keyset"})
    assert type(board) is TensorBoard  # every row, as README says


def test_thinning_can_be_chosen_or_left_out():
    assert type(sinks.make("text", all=True)) is Text
    assert type(sinks.make("text", every_seconds=None)) is Text
    assert sinks.make("csv", every_seconds=5).options["seconds"] == 5
    assert sinks.make("tensorboard", every_seconds=10).options == {"seconds": 10, "per": "key"}


def test_filters_stand_before_the_thinning_in_the_order_given():
    made = sinks.make("text", filters=[["smooth", {"keys": "return"}], "clocked"])
    assert type(made) is Smooth
    assert type(made.to.to) is Every
    assert type(made.to.to.to) is Text


@pytest.mark.parametrize("asked", [sinks.make, sinks.check])
def test_an_unknown_sink_is_answered_with_those_there_are(asked):
    with pytest.raises(
        UnknownOption, match=r"no sink is named 'tensorbord'. Did you mean 'tensorboard'. Available: csv, "
    ):
        asked("tensorbord")


def test_an_unknown_option_is_answered_with_those_there_are():
    with pytest.raises(UnknownOption, match=r"sink 'csv' has no option 'per_scop'. Did you mean 'per_scope'"):
        sinks.make("csv", per_scop=True)
    with pytest.raises(UnknownOption, match=r"sink 'csv' has no option 'per_scop'"):
        sinks.check("csv", {"per_scop": True, "all": True})
    sinks.check("csv", {"per_scope": True, "every_seconds": 3, "filters": []})
    with pytest.raises(BadInput, match="every_seconds=-1"):
        sinks.make("terminal", every_seconds=-1)


def test_what_is_known_of_the_default_sinks_without_loading_them_is_true():
    for name in sinks.names():
        assert (name in sinks.LIVE) == _registry.fact(name, "is_live", False), name
    assert sinks.without_live(["terminal", {"name": "terminal", "rows": 3}, "csv"]) == ["csv"]
    assert sinks.without_live(None) == []


def test_runs_whose_sinks_are_files_of_ours_may_be_looked_after_together():
    assert sinks.are_files([{"name": "csv"}, {"name": "text", "layout": "blocks"}])
    assert sinks.are_files([])
    for spec in ({"name": "wandb"}, {"name": "memory"}, {"name": "theirs"}, "csv"):
        assert not sinks.are_files([{"name": "csv"}, spec])


def test_an_installed_package_can_bring_a_sink(monkeypatch):
    point = EntryPoint("mine", "rollbook.sinks.memory:Memory", _registry.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point] if group == _registry.GROUP else [])
    assert "mine" in sinks.names()
    assert type(sinks.make("mine")) is Memory
    sinks.check("mine")


def test_asking_for_a_sink_loads_nothing_heavy():
    code = (
        "import sys; from rollbook import sinks; sinks.check('terminal'); sinks.check('text');"
        "made = [sinks.make(n) for n in ('terminal', 'text', 'csv', 'jsonl', 'tensorboard', 'wandb')];"
        "heavy = {'numpy', 'pyarrow', 'pandas', 'rich', 'google', 'tensorboard', 'wandb', 'msgspec', 'torch'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["wandb", "mlflow", "neptune", "trackio", "tensorboard"])
def test_a_sink_whose_package_is_missing_is_reported_at_once_and_loads_nothing(name, monkeypatch):
    import importlib.util

    loaded, find = set(sys.modules), importlib.util.find_spec
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None if package == name else find(package))
    with pytest.raises(MissingExtra, match=rf"the sink '{name}' needs {name}, .* 'rollbook(-core)?\[{name}\]'"):
        sinks.check(name)
    assert not [module for module in set(sys.modules) - loaded if not module.startswith(("rollbook", "importlib"))]
