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
    from rollbook.book import Book
    from rollbook.capture import RecordEpisodes, record_envs
    from rollbook.formats.opening import open as open
    from rollbook.run.run import Run
    from rollbook.run.scope import Scope
    from rollbook.run.session import attach, init
    from rollbook.run.siblings import siblings
    from rollbook.runs.run_set import RunSet
    from rollbook.system.version import __version__ as __version__

    def _current_run() -> Run: ...

    _current = _current_run()  # for type checkers and editors: the verbs are those of the current run
    clock, dump, finish, note = _current.clock, _current.dump, _current.finish, _current.note
    log, log_episode, log_many, log_samples = (
        _current.log,
        _current.log_episode,
        _current.log_many,
        _current.log_samples,
    )
    log_figure, log_histogram, log_image = _current.log_figure, _current.log_histogram, _current.log_image
    log_text, log_video, save_checkpoint = _current.log_text, _current.log_video, _current.save_checkpoint
    scope, store, timer = _current.scope, _current.store, _current.timer

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
    from rollbook.run.current import current_run, interactive, without_a_run

    run = current_run()
    if run is not None:
        return getattr(run, name)
    nothing = without_a_run(name)
    if interactive():  # so that help(rollbook.log) says what it does, before there is a run, too
        from functools import update_wrapper
        from types import MethodType

        from rollbook.run.run import Run

        update_wrapper(nothing, MethodType(getattr(Run, name), object()))  # a method of something: without `self`
    return nothing


if not TYPE_CHECKING:  # a type checker would take a name that `__getattr__` may have for anything
    __getattr__, __dir__ = _faces(
        __name__,
        {
            "rollbook.run.session": ("attach", "init"),
            "rollbook.run.run": ("Run",),
            "rollbook.run.scope": ("Scope",),
            "rollbook.run.siblings": ("siblings",),
            "rollbook.book.book": ("Book",),
            "rollbook.capture.gym": ("RecordEpisodes", "record_envs"),
            "rollbook.runs.run_set": ("RunSet",),
            "rollbook.formats.opening": ("open",),
            "rollbook.system.version": ("__version__",),
        },
        made=dict.fromkeys(_VERBS, _verb),
        modules=False,
    )

_meta_path.insert(0, _OtherNames)
