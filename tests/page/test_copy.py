"""A copy of the page, from a plain file server: every page of it opens and asks for no file that is not there."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rollbook.server.static_copy import export


@pytest.fixture(scope="module")
def copy(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("copy") / "copy"
    export([str(recorded)], folder)
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    handler = functools.partial(quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_the_charts_of_a_copy_are_drawn_and_it_says_that_it_is_one(copy: str, page: Any) -> None:
    page.open(copy).drawn(2)
    assert "a copy of" in page.tab.inner_text("header")
    assert page.errors == []


@pytest.mark.parametrize("name", ["compare", "episodes", "samples", "rollouts", "timings", "health"])
def test_every_page_of_a_copy_opens(name: str, copy: str, page: Any) -> None:
    missing: list[str] = []
    page.tab.on("response", lambda answer: answer.status >= 400 and missing.append(answer.url))
    page.open(copy, f"#/{name}")
    page.tab.wait_for_function("!document.querySelector('main [aria-busy=true]')")
    assert page.tab.inner_text("main").strip()
    assert (page.errors, missing) == ([], [])
