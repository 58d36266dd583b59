"""Framework versions that an adapter does not know are refused by name."""

from __future__ import annotations

import pytest

from rollbook.adapters import _versions
from rollbook.errors import MissingExtra


@pytest.mark.parametrize(
    ("version", "supported", "inside"),
    [
        ("2.9.0", ">=2.3,<3", True),
        ("2.9.0a4", ">=2.9,<3", True),
        ("2.13.0+cpu", "==2.13", True),
        ("3.0", ">=2.3,<3", False),
        ("2.2.1", ">=2.3,<3", False),
        ("2.10", ">2.9", True),
        ("1.0", "!=1", False),
        ("1.1", "<=1.1", True),
    ],
)
def test_version_ranges_compare_numbers_and_not_text(version: str, supported: str, inside: bool) -> None:
    assert _versions.in_range(version, supported) is inside


def test_the_error_names_the_version_the_range_and_the_way_out() -> None:
    with pytest.raises(_versions.UnsupportedVersion) as caught:
        _versions.check("stable-baselines3", "1.8.0", ">=2.3,<3")
    text = str(caught.value)
    assert "1.8.0" in text
    assert ">=2.3,<3" in text
    assert "pip install 'stable-baselines3>=2.3,<3'" in text


def test_a_missing_framework_gives_the_line_that_installs_it() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'rollbook\[sb3\]'"):
        _versions.require("a-framework-nobody-has", ">=1", extra="sb3", why="the adapter")


def test_an_installed_framework_answers_with_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_versions, "installed", lambda name: "2.9.1")
    assert _versions.require("stable-baselines3", ">=2.3,<3", extra="sb3", why="the adapter") == "2.9.1"


def test_a_range_that_is_no_range_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="no version range"):
        _versions.in_range("1.0", "about 2")
