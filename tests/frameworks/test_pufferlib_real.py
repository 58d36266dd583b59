"""PufferLib's own PPO on a CPU (the package pufferlib-core): every number of its logs is in the book.

The wheel's advantage kernel needs CUDA's runtime. It is the only function that is another one here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rollbook
from carts_of_pufferlib import arguments, made

GROUPS = ("puffer",)

pytest.importorskip("pufferlib")


@pytest.mark.core
@pytest.mark.timeout(180)
def test_every_row_that_pufferlib_logs_is_in_the_book(own_place: Path) -> None:
    from pufferlib import pufferl

    from rollbook.adapters.pufferlib import RollbookLogger

    args = arguments(str(own_place / "experiments"))
    vecenv, policy = made(args)
    given: list[tuple[dict[str, Any], int]] = []

    class Watching(RollbookLogger):
        """The logger, and a copy of what it is called with."""

        def log(self, logs: Any, step: int) -> None:
            given.append((dict(logs), step))
            super().log(logs, step)

    returned = pufferl.train("cartpole", args, vecenv, policy, Watching(config=args, project="carts"))
    (book,) = rollbook.open("runs")
    assert (book.project, book.name, book.seed, book.status) == ("carts", "cartpole", 3, "finished")
    assert returned
    assert all(any(logs == dict(kept) for kept, _step in given) for logs in returned)
    compared = 0
    for key in {key for logs, _step in given for key, value in logs.items() if key != "epoch"}:
        wanted = [(step, float(logs[key])) for logs, step in given if key in logs]
        series = book.series(key, x="env_step")
        assert list(zip(series.x.tolist(), series.mean.tolist(), strict=True)) == wanted, key
        compared += len(wanted)
    assert compared > 10  # it logs by the clock: a fast machine has fewer rows
    assert book.series("losses/policy_loss", x="epoch").x.tolist()[-1] == given[-1][0]["epoch"]
    assert [Path(row["path"]).suffix for row in book.checkpoints(everything=True).to_pylist()] == [".pt"]
    assert book.problems() == []
