"""Optional packages: imported where they are used; a missing one gives an error with the install command."""

from __future__ import annotations

import os
from _thread import RLock
from importlib import import_module

from rollbook.errors import MissingExtra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

_OF_READERS = ("anyio", "click", "duckdb", "numpy", "pyarrow", "scipy", "starlette", "uvicorn", "websockets", "yaml")
"""What rollbook depends on and rollbook-core does not."""

_FORK_SECONDS = 10.0
"""Seconds that a fork waits for an import; pyarrow takes long on a cold disk."""

_importing = RLock()


class forks_wait:
    """`with forks_wait(): import pyarrow`: for a thread of rollbook that imports in the training process.

    A child forked during an import inherits a lock that is never released, and hangs at its own next import. So a fork
    in another thread waits until this import is finished, at most ten seconds.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        _importing.acquire()

    def __exit__(self, *_exc: object) -> None:
        _importing.release()


def _before_fork() -> None:
    global _held
    _held = _importing.acquire(timeout=_FORK_SECONDS)


def _after_fork() -> None:
    if _held:
        _importing.release()


def _after_fork_in_child() -> None:
    global _importing
    _importing = RLock()


_held = False
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


def need(module: str, *, extra: str, why: str, also: str = "") -> ModuleType:
    """Import and return the module; if it is missing, raise with the exact install command.

    Args:
      module: dotted name of the module to import.
      extra: the extra of rollbook that contains it (`pip install 'rollbook[extra]'`).
      why: the user of the module, as the subject of a sentence: "the W&B sink".
      also: packages that the extra leaves to the user, because their pins determine all others: "LightZero".
    Raises:
      MissingExtra: the package is not installed. An installed but broken package raises its own error.
    """
    try:
        with forks_wait():
            return import_module(module)
    except ModuleNotFoundError as err:
        if (err.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise _missing(module, extra, why, also) from None


_core_alone: bool | None = None


def is_core_alone() -> bool:
    """Whether this installation cannot seal or read runs: numpy or pyarrow is not installed. Loads neither.

    The first call searches for them, as an import would; `init` makes it, before a thread of rollbook runs.
    """
    global _core_alone
    if _core_alone is None:
        _core_alone = not (_is_there("numpy") and _is_there("pyarrow"))
    return _core_alone


def need_all(asked: str, packages: Iterable[str]) -> None:
    """Refuse what rollbook-core alone cannot do. Loads nothing.

    Raises:
      MissingExtra: one of the packages is not installed.
    """
    for package in packages:
        if not _is_there(package):
            raise _not_in_core(asked, package)


def core_alone(asked: str, err: ImportError) -> MissingExtra | None:
    """The error for `asked` where rollbook-core is installed without the rest; None if `err` has another cause.

    Args:
      asked: what the caller wanted, as the subject of a sentence.
      err: what its import raised.
    """
    package = (err.name or "").partition(".")[0]
    return _not_in_core(asked, package) if package in _OF_READERS and not _is_there(package) else None


def _not_in_core(asked: str, package: str) -> MissingExtra:
    words = (
        f"{asked} needs {package}, which is not installed: rollbook-core alone is here, and it only records. To get "
        "the rest: pip install 'rollbook-core[full]'. Or copy the run's folder to where rollbook is installed"
    )
    return MissingExtra(words, name=package)


def installed(package: str, *, extra: str, why: str) -> None:
    """Check that a package is installed, without loading it; see `need`.

    Raises:
      MissingExtra: there is no such package.
    """
    if not _is_there(package.partition(".")[0]):
        raise _missing(package, extra, why, "")


def _is_there(package: str) -> bool:
    import sys
    from importlib.util import find_spec

    return package in sys.modules or find_spec(package) is not None


def _missing(module: str, extra: str, why: str, also: str) -> MissingExtra:
    package = module if module.startswith("google.") else module.partition(".")[0]
    return MissingExtra(f"{why} needs {package}, which is not installed: pip install {to_install(extra, also)}")


def to_install(extra: str, also: str = "") -> str:
    """The words after `pip install`."""
    package = f"'{_distribution()}[{extra}]'"
    return f"{also} {package}" if also else package


def _distribution() -> str:
    """What is installed here, which pip need not look for: `rollbook-core` where that is alone, or from a checkout."""
    from importlib.metadata import PackageNotFoundError, version

    for name in ("rollbook", "rollbook-core"):
        try:
            version(name)
        except PackageNotFoundError:
            continue
        return name
    return "rollbook-core" if is_core_alone() else "rollbook"
