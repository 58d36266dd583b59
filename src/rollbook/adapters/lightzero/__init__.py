"""LightZero and DI-engine: their experiment folder, their text logs and their TensorBoard file, over a run.

    from rollbook.adapters.lightzero import train_muzero        # instead of: from lzero.entry import train_muzero

    train_muzero([main_config, create_config], seed=0, max_env_step=int(1e5))

Other trainings of these libraries run inside `with recording(run):`; a middleware pipeline uses `online_logger(run)`.
Without LightZero, CollectorLog, EvaluatorLog, LearnerLog and BufferLog write the same folder for any loop.
"""

from __future__ import annotations

import os

from rollbook.adapters._run import options_of
from rollbook.adapters.lightzero.bridge import recording
from rollbook.adapters.lightzero.buffer import BufferLog
from rollbook.adapters.lightzero.collector import CollectorLog
from rollbook.adapters.lightzero.entry import ENTRIES, entry
from rollbook.adapters.lightzero.evaluator import EvaluatorLog
from rollbook.adapters.lightzero.events import EventWriter
from rollbook.adapters.lightzero.experiment import Experiment
from rollbook.adapters.lightzero.learner import LearnerLog
from rollbook.adapters.lightzero.middleware import online_logger
from rollbook.adapters.lightzero.tables import get_tabulate_vars, get_tabulate_vars_hor, pretty_print
from rollbook.adapters.lightzero.text import TextLogger
from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "BufferLog",
    "CollectorLog",
    "EvaluatorLog",
    "EventWriter",
    "Experiment",
    "LearnerLog",
    "TextLogger",
    "build_logger",
    "get_tabulate_vars",
    "get_tabulate_vars_hor",
    "online_logger",
    "pretty_print",
    "recording",
]


def build_logger(
    path: str | os.PathLike[str],
    name: str | None = None,
    need_tb: bool = True,
    need_text: bool = True,
    text_level: int | str = "INFO",
    *,
    run: object = None,
    project: str | None = None,
    run_options: Mapping[str, object] | None = None,
) -> tuple[TextLogger | None, EventWriter | None]:
    """DI-engine's `build_logger`: a text logger at `<path>/<name>_logger.txt` and a TensorBoard writer.

    Two loggers with one name and different paths are independent, and Python's root logger is not changed. The writer's
    events go into the run's single event file, and into its book.

    Args:
      path: the folder of the text file.
      name: the first part of the file's name. None: "default".
      need_tb, need_text: whether to make the writer, and the text logger; else None instead of it.
      text_level: messages below it are dropped; a number or a name of Python's logging.
      run: a Run or an Experiment for the writer. None uses the current run, or opens one.
      project, run_options: of a run that is opened here; arguments of `rollbook.init`. Loggers share the run.
    """
    from rollbook.adapters.lightzero.experiment import experiment_of

    options = options_of(project, run_options)
    text = TextLogger(path, name or "default", text_level) if need_text else None
    return text, (experiment_of(run, options).events if need_tb else None)


__getattr__, __dir__ = attach(__name__, {}, made=dict.fromkeys(ENTRIES, entry))  # LightZero's entry functions
