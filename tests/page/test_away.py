"""A laptop that wakes, a server that was stopped: one line says so, and the page goes on by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from page_server import record
from rollbook.server.serving import listen
from rollbook.server.settings import ServerSettings

pytestmark = pytest.mark.page


def test_while_the_server_is_away_one_line_says_so_and_afterwards_the_page_goes_on(page: Any, tmp_path: Path) -> None:
    for name, lr in (("ppo", 1e-2), ("dqn", 1e-3)):
        record(tmp_path, name, 1, lr, rows=300)
    with listen(ServerSettings(roots=(str(tmp_path),), port=0)) as server:
        address = server.address
        page.open(address).settled().drawn()
        page.tab.wait_for_function(
            "() => performance.getEntriesByType('resource').some(one => one.name.includes('Compare'))"
        )
    page.tab.wait_for_selector(".banner")
    page.drawn()  # what was read stays
    page.tab.keyboard.press("c")
    page.tab.wait_for_selector("text=As soon as the server answers, the comparison will stand here.")
    assert page.tab.get_by_text("The server does not answer.").count() == 1
    with listen(ServerSettings(roots=(str(tmp_path),), port=urlsplit(address).port)):
        page.tab.click("text=Try now")
        page.tab.wait_for_selector(".verdict")
        assert page.tab.locator(".banner").count() == 0
    assert page.errors == []
