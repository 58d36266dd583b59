"""Tracker objects that a user passes to an adapter: each gets the rows and configurations.

The dialect is detected by methods, not by class:

    log_metric, set_property        an old-style Neptune experiment: log_metric(key, x, y)
    item access whose items append  today's Neptune run: run[key].append(value, step=x)
    add_scalar                      a SummaryWriter: add_scalar(key, value, x)
    log_metrics                     MLflow: log_metrics({key: value}, step=x)
    log                             W&B, Trackio, rollbook: log({key: value}, step=x)
    call                            a function of (row, step)

Trackers run in the calling thread, as they would without rollbook.
"""

from __future__ import annotations

from functools import partial

from rollbook.errors import BadInput
from rollbook.system.guard import tolerating
from rollbook.values import flatten, scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from rollbook.system.bill import Bill


class Trackers:
    """Several trackers as one. An exception from a tracker is counted and reported once; the others still get the row.

    Args:
      objects: the trackers; None is skipped.
      count: where failures are counted.
    Raises:
      BadInput: an object has none of these methods.
    """

    def __init__(self, objects: Iterable[object], count: Bill) -> None:
        self._objects = [(tracker, _metrics_of(tracker)) for tracker in objects if tracker is not None]
        self._count = count

    def __len__(self) -> int:
        return len(self._objects)

    def row(self, values: Mapping[str, object], step: int | None) -> None:
        """Send the numbers of one row; everything else (text, None) is left out."""
        if not self._objects:
            return
        numbers = {key: number for key, value in values.items() if (number := scalar_of(value)) is not None}
        for tracker, send in self._objects:
            self._count.guard("tracker", f"the tracker {type(tracker).__name__}", partial(send, numbers, step))

    def config(self, config: Mapping[str, object]) -> None:
        """Send a configuration, with nested names joined by ".", to the trackers that accept one."""
        for tracker, _ in self._objects:
            who = f"the tracker {type(tracker).__name__}"
            self._count.guard("tracker", who, partial(_send_config, tracker, config))


def _metrics_of(tracker: Any) -> Callable[[dict[str, float], int | None], object]:
    if offers(tracker, "log_metric") and offers(tracker, "set_property"):
        return lambda row, step: _old_neptune(tracker, row, step)
    if hasattr(tracker, "__getitem__") and hasattr(tracker, "__setitem__") and not isinstance(tracker, dict):
        return lambda row, step: _appended(tracker, row, step)
    if offers(tracker, "add_scalar"):
        return lambda row, step: [tracker.add_scalar(key, value, step) for key, value in row.items()]
    if offers(tracker, "log_metrics"):
        return lambda row, step: tracker.log_metrics(row, step=step)
    if offers(tracker, "log_metric"):
        return lambda row, step: _old_neptune(tracker, row, step)
    if offers(tracker, "log"):
        return lambda row, step: tracker.log(row) if step is None else tracker.log(row, step=step)
    if callable(tracker):
        return tracker  # type: ignore[no-any-return]
    raise BadInput(
        f"{tracker!r:.200} is a {type(tracker).__name__}, which cannot be used as a tracker: it needs one of "
        "log_metric(key, x, y), run[key].append(value, step=), add_scalar(key, value, x), log_metrics(dict, step=), "
        "log(dict, step=), or to be a function of (row, step)"
    )


def offers(tracker: object, name: str) -> bool:
    """Whether a tracker has a method. Today's Neptune runs raise their own errors when an old name is looked up."""
    with tolerating(Exception):
        return callable(getattr(tracker, name, None))
    return False


def _old_neptune(tracker: Any, row: dict[str, float], step: int | None) -> None:
    for key, value in row.items():
        if step is None:
            tracker.log_metric(key, value)
        else:  # 0 is a step like any other
            tracker.log_metric(key, step, value)


def _appended(tracker: Any, row: dict[str, float], step: int | None) -> None:
    for key, value in row.items():
        tracker[key].append(value, step=step)


def _send_config(tracker: Any, config: Mapping[str, Any]) -> None:
    leaves = {key.replace("/", "."): value for key, value in flatten(config)}
    if offers(tracker, "set_property"):
        for key, value in leaves.items():
            tracker.set_property(key, value)
    elif hasattr(tracker, "__setitem__") and not isinstance(tracker, dict):
        plain = (int, float, str)
        tracker["config"] = {key: value if isinstance(value, plain) else str(value) for key, value in leaves.items()}
    elif offers(tracker, "log_params"):
        tracker.log_params(leaves)
    elif hasattr(getattr(tracker, "config", None), "update"):
        tracker.config.update(dict(config), **({"allow_val_change": True} if _is_wandb(tracker) else {}))


def _is_wandb(tracker: object) -> bool:
    return type(tracker).__module__.partition(".")[0] == "wandb"
