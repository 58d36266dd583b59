"""Arrays that lie on a device: what has no distribution, or does not come back, costs itself and not the run."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from cases import some_of
from rollbook.errors import LoggingFailed, RollbookWarning


class OnDevice:
    """An array on a device, as torch offers them: `detach`, `clone`, `cpu`, and no numpy before it is on the host."""

    def __init__(self, content: Any, dtype: str, fails: str = "", host: bool = False) -> None:
        self.content, self.dtype, self.fails = np.asarray(content), dtype, fails
        self.device = "cpu" if host else "fake:0"
        self.shape, self.size, self.nbytes = self.content.shape, self.content.size, self.content.nbytes

    def _or_fail(self, verb: str) -> OnDevice:
        if self.fails == verb:
            raise RuntimeError(f"the device was lost in {verb}")
        return self

    def detach(self) -> OnDevice:
        return self._or_fail("detach")

    def clone(self) -> OnDevice:
        return self._or_fail("clone")

    def cpu(self) -> OnDevice:
        return OnDevice(self._or_fail("cpu").content, self.dtype, self.fails, host=True)

    def float(self) -> OnDevice:
        return OnDevice(self.content.astype("f4"), "float32", self.fails, self.device == "cpu")

    def numpy(self) -> Any:
        if self.device != "cpu":
            raise TypeError("can't convert fake:0 device type tensor to numpy")
        if self.dtype == "bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.content


NO_DISTRIBUTION: dict[str, Callable[[], Any]] = {
    "complex numbers": lambda: OnDevice([1 + 2j, 3j], "complex64"),
    "texts": lambda: OnDevice(["a", "b"], "float_of_something"),
    "objects": lambda: OnDevice([None, {}], "float_of_something"),
    "a device that is lost": lambda: OnDevice([1.0, 2.0], "float32", fails="cpu"),
    "bfloat16 that cannot be made float": lambda: OnDevice(["x", "y"], "bfloat16"),
}


@pytest.mark.parametrize(
    ("what", "strict"),
    some_of(
        itertools.product(NO_DISTRIBUTION, [False, True]),
        lambda case: case[1] == ([*NO_DISTRIBUTION].index(case[0]) % 2 > 0),
    ),
)
def test_a_device_array_without_a_distribution_costs_itself_and_finish_ends_well(
    tmp_path: Path, what: str, strict: bool
) -> None:
    run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline", strict=strict)
    run.log({"odd": NO_DISTRIBUTION[what](), "plain": 1.0, "good": OnDevice([1.0, 2.0, 4.0], "bfloat16")}, env_step=1)
    with pytest.raises(LoggingFailed, match="odd") if strict else pytest.warns(RollbookWarning, match="odd"):
        run.finish()
    run.finish()  # to no effect
    assert run.book.status == "finished"
    assert run.book.metrics(["plain"]).column("plain").to_pylist() == [1.0]
    assert [row["key"] for row in run.book.table("histograms").to_pylist()] == ["good"]
    assert run.book.table("histograms").column("values").to_pylist() == [[1.0, 2.0, 4.0]]
    assert run.book.problems() == []
    assert list(run.bill()["names"]["lost_pending"]) == ["odd"]


def test_a_strict_runs_own_thread_outlives_what_it_cannot_fetch_and_finish_says_it(tmp_path: Path) -> None:
    run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline", strict=True)
    run.log({"odd": NO_DISTRIBUTION["a device that is lost"](), "plain": 1.0})
    run._parts.ticker.tick()
    run.log({"plain": 2.0})
    with pytest.raises(LoggingFailed, match="odd"):
        run.finish()
    assert run.book.status == "finished"
    assert run.book.metrics(["plain"]).column("plain").to_pylist() == [1.0, 2.0]
