"""Questions about many runs, most of which lie in the journal."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _sealing_has_tests_of_its_own(request: pytest.FixtureRequest) -> None:
    """Runs that a test records are not sealed, those of a module are; see `sealed`."""
    if "sealed" not in request.fixturenames:
        request.getfixturevalue("nothing_is_sealed")
