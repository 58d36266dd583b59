"""The versions of a framework that an adapter supports. Other versions raise an error that names the range."""

from __future__ import annotations

import re

from rollbook.errors import MissingExtra, RollbookError
from rollbook.system.optional import to_install


class UnsupportedVersion(RollbookError, ImportError):
    """The installed version of the framework is not supported by this adapter."""


_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*([0-9][\w.]*)\s*")


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version: "2.9.0a4+cpu" is (2, 9). Trailing zeros are dropped, a pre-release is its release."""
    match = re.match(r"\d+(?:\.\d+)*", version.strip().lstrip("vV"))
    numbers = [int(part) for part in match.group().split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def in_range(version: str, supported: str) -> bool:
    """Whether `version` satisfies `supported`, a comma-separated list such as ">=2.3,<3"."""
    have = _release(version)
    for clause in supported.split(","):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            raise ValueError(f"{supported!r} is not a version range: write clauses like '>=2.3,<3'")
        operator, number = match.groups()
        want = _release(number)
        holds = {
            ">=": have >= want,
            "<=": have <= want,
            "==": have == want,
            "!=": have != want,
            ">": have > want,
            "<": have < want,
        }
        if not holds[operator]:
            return False
    return True


def installed(distribution: str) -> str | None:
    """The installed version of a distribution, or None."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def check(framework: str, version: str, supported: str) -> None:
    """Raise if a version is outside the supported range.

    Args:
      framework: its name as users install it.
      version: the installed version.
      supported: the range, e.g. ">=2.3,<3".
    Raises:
      UnsupportedVersion: names framework, version, range and the command that installs a supported version.
    """
    if not in_range(version, supported):
        raise UnsupportedVersion(
            f"this adapter of rollbook works with {framework} {supported}; found {version}. "
            f"Install a supported version: pip install '{framework}{supported}'"
        )


def require(framework: str, supported: str, *, extra: str, why: str, also: str = "") -> str:
    """Return the installed version of `framework`; raise if it is missing or not supported.

    Args:
      also: packages that the extra does not install; see `need`.
    Raises:
      MissingExtra: it is not installed; the message has the pip command.
      UnsupportedVersion: it is outside `supported`.
    """
    version = installed(framework)
    if version is None:
        what = to_install(extra, also)
        raise MissingExtra(f"{why} needs {framework} {supported}, which is not installed: pip install {what}")
    check(framework, version, supported)
    return version
