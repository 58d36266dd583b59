"""A framework in a version nobody tried is refused by name, with the range that is."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("adapter", "distribution", "version", "supported"),
    [
        ("acme", "dm-acme", "1.0.0", ">=0.2,<0.5"),
        ("tianshou", "tianshou", "3.1.0", ">=0.5,<3"),
        ("mrl", "mrl-pypi", "0.2.0", ">=0.1,<0.2"),
    ],
)
def test_an_unknown_version_is_refused_at_import(adapter: str, distribution: str, version: str, supported: str) -> None:
    code = (
        "from rollbook.adapters import _versions\n"
        f"_versions.installed = lambda name: {version!r} if name == {distribution!r} else None\n"
        f"import rollbook.adapters.{adapter}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "UnsupportedVersion" in last
    for part in (distribution, version, supported):
        assert part in last


def test_a_missing_lightzero_gives_the_line_that_installs_it() -> None:
    from rollbook.adapters import _versions, lightzero
    from rollbook.errors import MissingExtra

    if _versions.installed("DI-engine") is not None:
        pytest.skip("it is installed here")
    with pytest.raises(MissingExtra, match=r"pip install 'rollbook\[lightzero\]'"), lightzero.recording():
        pass
