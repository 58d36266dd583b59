"""verl's logger and its rollout dumps, without verl."""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollbook.adapters import _versions, verl
from rollbook.adapters.verl import Tracking, import_rollouts, register
from rollbook.errors import BadInput, MissingExtra
from rollbook.run.run import Run


def dump(folder: Path, step: int, n: int = 4, **more: list[Any]) -> None:
    """As verl writes it."""
    folder.mkdir(exist_ok=True)
    columns: dict[str, list[Any]] = {
        "input": [f"q{i // 2}" for i in range(n)],
        "output": [f"a{step}{i}" for i in range(n)],
        "gts": [None] * n,
        "score": [float(i) for i in range(n)],
        "step": [step] * n,
        **more,
    }
    rows = [{name: values[i] for name, values in columns.items()} for i in range(n)]
    (folder / f"{step}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_each_log_is_a_row_at_its_global_step(run: Run, rows: Any) -> None:
    tracking = Tracking("p", "e", config={"trainer": {"n": 1}}, run=run)
    for step in (1, 2):
        tracking.log({"actor/pg_loss": 0.1 * step, "training/epoch": 0, "timing_s/gen": 1.5}, step=step)
    tracking.log({"actor/pg_loss": 9.0}, step=3, backend=["console"])
    tracking.finish()
    assert rows(run, "actor/pg_loss", "timing_s/gen", x="step") == [(1, 0.1, 1.5), (2, 0.2, 1.5)]
    assert run.config["trainer"] == {"n": 1}
    assert run.status == "running"  # it was not opened here


def test_a_run_of_its_own_ends_with_the_exit_code(tmp_path: Path) -> None:
    for code, status in ((0, "finished"), (1, "crashed")):
        tracking = Tracking(
            "a/b", f"e{code}", "rollbook", run_options={"dir": tmp_path / "r", "sinks": (), "keeper": "inline"}
        )
        tracking.log({"x": 1.0}, step=1)
        tracking.finish(exit_code=code)
        assert (tracking.run.project, tracking.run.book.status) == ("a-b", status)


def rollouts(run: Run, where: str | None = None) -> list[dict[str, Any]]:
    return run.book.rollouts(where=where, order_by="item").to_pylist()


def test_rollout_dumps_become_rollouts_as_they_appear(run: Run, tmp_path: Path) -> None:
    dump(tmp_path / "rollouts", 1)  # of an earlier attempt
    folders = {"rollout_data_dir": str(tmp_path / "rollouts"), "validation_data_dir": str(tmp_path / "val")}
    tracking = Tracking("p", "e", config={"trainer": folders}, run=run)
    dump(tmp_path / "rollouts", 2)
    tracking.log({"x": 1.0}, step=2)
    assert len(run.book.rollouts()) == 0  # verl may still be writing it
    (tmp_path / "rollouts" / "3.jsonl").write_text('{"input": "q", "output": "cut o')
    tracking.log({"x": 1.0}, step=3)
    tracking.log({"x": 1.0}, step=4)
    assert [row["item"] for row in rollouts(run)] == ["a20", "a21", "a22", "a23"]
    dump(tmp_path / "rollouts", 3, uid=["u_0_0", "u_1_0", "v_0_0", "v_1_0"], acc=[1, 0, 1.5, None])
    dump(tmp_path / "val", 4)
    tracking.finish()
    found = rollouts(run, "gradient_step = 3")
    assert [(row["mode"], row["used"], row["group"]) for row in found] == [
        ("train", True, name) for name in ("u", "u", "v", "v")
    ]
    assert [row["acc"] for row in found] == [1, 0, 1.5, None]
    found = rollouts(run, "mode = 'eval'")
    assert [row["group"] for row in found] == ["eval-4-0", "eval-4-0", "eval-4-1", "eval-4-1"]
    assert [(row["reward"], row["used"]) for row in found] == [(float(i), None) for i in range(4)]
    assert run.bill()["drops"] == {}


def test_a_folder_of_dumps_is_imported_whole(run: Run, tmp_path: Path) -> None:
    for step in (10, 9):
        dump(tmp_path / "d", step, extra=[{"a": 1}, [2], "three", None])
    assert import_rollouts(run, tmp_path / "d") == 8
    rows = run.book.rollouts(order_by="gradient_step, item").to_pylist()
    assert [row["gradient_step"] for row in rows] == [9] * 4 + [10] * 4
    assert [row["extra"] for row in rows[:4]] == ['{"a": 1}', "[2]", "three", None]
    with pytest.raises(BadInput, match="no such folder"):
        import_rollouts(run, tmp_path / "nowhere")


def test_a_dump_that_was_never_finished_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"input": "q", "output": "cut o')
    with pytest.warns(UserWarning, match=r"1\.jsonl is not whole"):
        assert import_rollouts(run, tmp_path) == 0


@pytest.mark.skipif(importlib.util.find_spec("verl") is not None, reason="verl is installed here")
def test_without_verl_the_line_that_installs_it_is_named(run: Run) -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'rollbook(-core)?\[verl\]'"):
        Tracking("p", "e", ["console", "rollbook"], run=run)


def test_an_unknown_version_is_named_with_the_range(installed: Callable[[str, str], None]) -> None:
    installed("verl", "1.2.0")
    with pytest.raises(_versions.UnsupportedVersion, match=r"verl >=0\.5,<1; found 1\.2\.0"):
        register()


def test_a_closed_list_of_back_ends_is_opened_for_one_more(
    run: Run, rows: Any, monkeypatch: pytest.MonkeyPatch, installed: Callable[[str, str], None]
) -> None:
    class Theirs:
        supported_backend = ["console"]  # noqa: RUF012 (as it is there)

        def __init__(
            self, project_name: str, experiment_name: str, default_backend: Any = "console", config: Any = None
        ):
            assert all(name in ("console",) for name in default_backend)
            self.logger: dict[str, Any] = {}
            self._finished = False

        def log(self, data: Any, step: int, backend: Any = None) -> None:
            for one in self.logger.values():
                one.log(data=data, step=step)

        def finish(self, exit_code: int = 0) -> None:
            self._finished = True

    module = types.ModuleType("verl.utils.tracking")
    module.Tracking = Theirs  # type: ignore[attr-defined]
    for name in ("verl", "verl.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "verl.utils.tracking", module)
    installed("verl", "0.9.1")
    register(run)
    register(run)  # again
    assert Theirs.supported_backend == ["console", "rollbook"]
    one = Theirs("p", "e", ["console", "rollbook"], {})
    one.log({"a": 1.0}, 7)
    one.finish()
    assert rows(run, "a", x="step") == [(7, 1.0)]
    assert Theirs("p", "e", "console").logger == {}
    assert verl.SUPPORTED == ">=0.5,<1"
