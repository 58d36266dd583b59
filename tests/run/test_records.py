"""The records that sinks and health rules get behave as frozen dataclasses do, though they are none."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path

import pytest

from rollbook.protocols import Alert, Row, RunInfo

RECORDS: dict[str, Row | RunInfo | Alert] = {
    "row": Row(1.5, {"env_step": 3}, {"loss": 0.5}, keys=("loss",)),
    "info": RunInfo("runs/one", "p", "n", "r1", seed=7),
    "alert": Alert("nan", "fail", "loss is NaN", {"rows": 3}, key="loss"),
}
Record = Row | RunInfo | Alert


@pytest.fixture(params=sorted(RECORDS))
def record(request: pytest.FixtureRequest) -> Record:
    return RECORDS[request.param]


def test_copies_are_equal(record: Record) -> None:
    for again in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert again == record
        assert repr(again) == repr(record)
    assert record not in [other for other in RECORDS.values() if other is not record]


def test_dataclasses_functions_take_it(record: Record) -> None:
    assert dataclasses.is_dataclass(record)
    names = [field.name for field in dataclasses.fields(record)]
    cells = dataclasses.asdict(record)
    assert list(cells) == names == list(type(record).__match_args__)
    assert all(cells[name] == getattr(record, name) for name in names)
    assert dataclasses.replace(record) == record
    last = names[-1]
    other = dataclasses.replace(record, **{last: "other"})
    assert getattr(other, last) == "other"
    assert other != record


def test_it_does_not_change(record: Record) -> None:
    name = type(record).__match_args__[0]
    with pytest.raises(AttributeError, match=rf"{name}.*dataclasses\.replace"):
        setattr(record, name, 1)
    with pytest.raises(AttributeError, match=name):
        delattr(record, name)
    with pytest.raises(AttributeError):
        record.unknown = 1


def test_patterns_take_its_cells_in_order() -> None:
    match RECORDS["alert"]:
        case Alert(rule, "fail", _, {"rows": rows}):
            assert (rule, rows) == ("nan", 3)
        case _:
            pytest.fail("the pattern did not match")


def test_a_folder_is_a_path_whatever_was_passed() -> None:
    info = RunInfo("runs/one", "p", "n", "r1")
    assert info.folder == Path("runs/one")
    assert info == RunInfo(Path("runs/one"), "p", "n", "r1")


def test_a_record_of_plain_cells_is_hashable() -> None:
    assert len({Row(1.0, (), (), writer="a"), Row(1.0, (), (), writer="a"), Row(2.0, (), (), writer="a")}) == 2  # type: ignore[arg-type]
