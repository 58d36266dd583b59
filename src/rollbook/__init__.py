"""rollbook: the flight recorder of reinforcement-learning runs.

    import rollbook

    with rollbook.init("cartpole", "ppo", seed=3) as run:
        run.log({"train/return": 21.0}, env_step=128)

    book = rollbook.open("runs").one("cartpole/ppo", seed=3, newest=True)
    book.metrics(["train/return"], x="env_step").to_pandas()

The import loads neither numpy nor pyarrow. Each name below loads what it needs at its first use.
"""

from __future__ import annotations

from sys import meta_path as _meta_path

from rollbook.system.lazy import attach as _faces
from rollbook.system.other_names import OtherNames as _OtherNames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.book import Book
    from rollbook.capture import RecordEpisodes, record_envs
    from rollbook.formats.opening import open as open
    from rollbook.run.run import Run
    from rollbook.run.scope import Scope
    from rollbook.run.session import attach, init
    from rollbook.run.siblings import siblings
    from rollbook.runs.run_set import RunSet

# `rollbook.open` is public too, but not listed: `from rollbook import *` would replace Python's own `open`.
__all__ = [
    "Book",
    "RecordEpisodes",
    "Run",
    "RunSet",
    "Scope",
    "__version__",
    "attach",
    "clock",
    "dump",
    "finish",
    "init",
    "log",
    "log_episode",
    "log_figure",
    "log_histogram",
    "log_image",
    "log_many",
    "log_samples",
    "log_text",
    "log_video",
    "note",
    "record_envs",
    "save_checkpoint",
    "scope",
    "siblings",
    "store",
    "timer",
]

_VERBS = frozenset(
    name
    for name in __all__
    if name.islower() and name not in ("attach", "init", "record_envs", "siblings", "__version__")
)
"""Module-level verbs: they act on the innermost `with` run of this context, else on the run opened last."""


def _verb(name: str) -> object:
    from rollbook.run.current import current_verb

    return current_verb(name)


def _siblings(n: int, *, seeds: Any = None, **init_arguments: Any) -> object:
    """Open n runs that take arrays with a leading seed axis.

    Args:
      n: number of runs.
      seeds: n seeds; a number s for s, s + 1, …; None for 0, 1, ….
      init_arguments: arguments for each run, see `init`. With `run_id`, each run's id ends with its seed.
    Raises:
      BadInput: n and seeds do not fit.
    """
    from rollbook.run.session import init
    from rollbook.run.siblings import siblings
    from rollbook.sinks import without_live

    def unseen(sinks: Any = None, **others: Any) -> Any:
        return init(sinks=without_live(sinks), **others)

    return siblings(n, seeds=seeds, open_run=init, open_others=unseen, **init_arguments)


__getattr__, __dir__ = _faces(
    __name__,
    {
        "rollbook.run.session": ("attach", "init"),
        "rollbook.run.run": ("Run",),
        "rollbook.run.scope": ("Scope",),
        "rollbook.book.book": ("Book",),
        "rollbook.capture.gym": ("RecordEpisodes", "record_envs"),
        "rollbook.runs.run_set": ("RunSet",),
        "rollbook.formats.opening": ("open",),
        "rollbook.system.version": ("__version__",),
    },
    made={**dict.fromkeys(_VERBS, _verb), "siblings": lambda _name: _siblings},
    modules=False,
)

_meta_path.insert(0, _OtherNames)
