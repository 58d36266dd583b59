"""What turns an RL loop into rows and frames: episodes, samples, timings, checkpoints, media; each part loads alone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """`rollbook.capture.gym` works without having been imported, and costs nothing until then."""
    if not name.startswith("_"):
        from importlib import import_module

        full = f"{__name__}.{name}"
        try:
            return import_module(full)
        except ModuleNotFoundError as err:
            if err.name != full:
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from pkgutil import iter_modules

    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
