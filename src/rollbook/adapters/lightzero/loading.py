"""If a resumed training loads a file, the run continues from it: later rows are hidden, the counters continue there.

LightZero and DI-engine load a model by `torch.load` and then count from 0. The program gives them the path, so their
loads are watched until the first iteration is counted.
"""

from __future__ import annotations

import os
import sys
from functools import wraps

from rollbook.system.bill import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rollbook.adapters.lightzero.experiment import Experiment


def watched(load: Callable[..., object], experiment: Experiment) -> Callable[..., object]:
    """`torch.load`, after which a resumed run goes back to the checkpoint that was loaded. Not for an evaluation."""

    @wraps(load)
    def loading(source: Any = None, *args: Any, **kwargs: Any) -> object:
        found = load(source, *args, **kwargs)
        evaluates = sys._getframe(1).f_code.co_name.startswith("eval")
        if isinstance(source, (str, os.PathLike)) and not evaluates:
            go_back_to(experiment, source)
        return found

    return loading


def go_back_to(experiment: Experiment, path: str | os.PathLike[str]) -> None:
    """Go back to the checkpoint that this file is. Does nothing once the training has counted, or in a new run."""
    run = experiment.run
    if not run.resumed or not run.internals.writer.main or getattr(experiment.counters, "has_begun", True):
        return
    with counted(run.count, "lightzero_resume", "the run could not go back to the checkpoint that was loaded"):
        identity = run.internals.saved_as(path)
        if identity is None:
            run.note(f"{os.fspath(path)} was loaded, which is no checkpoint of this run: no row is abandoned")
            return
        run.restore(identity, random_states=False)
        run.note(f"{os.fspath(path)} was loaded: the run goes on from this checkpoint")
