"""On the PYTHONPATH of programs started by `rollbook run`: sets their hooks, then loads the next sitecustomize."""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _next_one() -> None:
    """The sitecustomize that Python would have found without this one."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", [path for path in sys.path if os.path.abspath(path) != _HERE])
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get("ROLLBOOK_WANDB") or os.environ.get("ROLLBOOK_TENSORBOARD"):
    try:
        if os.environ.get("ROLLBOOK_WANDB"):
            from rollbook.adapters.wandb.hook import install

            install(os.environ["ROLLBOOK_WANDB"])
        if os.environ.get("ROLLBOOK_TENSORBOARD"):
            from rollbook.adapters.tensorboard.late import install_when_imported

            install_when_imported()
    except (ImportError, RuntimeError, ValueError) as err:  # the program still runs
        sys.stderr.write(f"rollbook run: the hooks were not set: {type(err).__name__}: {err}\n")
_next_one()
