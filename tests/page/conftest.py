"""A real browser, and a real server that shows runs recorded here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from page_server import record
from rollbook.server.serving import listen
from rollbook.server.settings import ServerSettings
from waiting import PATIENCE

BUILT = Path(__file__).parents[2] / "src" / "rollbook" / "server" / "page" / "index.html"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = os.path.join(os.path.dirname(__file__), "")
    for item in items:
        if os.fspath(item.path).startswith(here):
            item.add_marker(pytest.mark.page)
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, driven by Playwright."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="make test-page installs what drives the browser")
    program = os.environ.get("ROLLBOOK_CHROMIUM") or next((p for p in map(shutil.which, NAMES) if p), None)
    if program is None:
        pytest.skip("no chromium here: make test-page says what to install")
    if not BUILT.is_file():
        pytest.skip("the page is not built: make page")
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--enable-precise-memory-info"]
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six runs: two learning rates, three seeds each. Not to be changed."""
    folder = tmp_path_factory.mktemp("recorded") / "runs"
    for lr in (3e-4, 1e-3):
        for seed in range(3):
            record(folder, "ppo", seed, lr, rows=1_500)
    return folder


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    """Shows a folder of runs; gives the address."""
    servers: list[Any] = []

    def start(folder: Path) -> str:
        server = listen(ServerSettings(roots=(str(folder),), port=0))
        servers.append(server)
        return server.__enter__().address

    yield start
    for server in servers:
        server.__exit__(None, None, None)


class Page:
    """A tab, and everything that went wrong in it."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        tab.set_default_timeout(1000 * PATIENCE)  # of what it waits for
        self.errors: list[str] = []
        self._asked: set[Any] = set()
        tab.on("request", self._sees)
        tab.on("requestfinished", lambda asked: self._asked.discard(asked))
        tab.on("requestfailed", lambda asked: self._asked.discard(asked))
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", lambda said: self._heard(said.type, said.text))

    def _sees(self, asked: Any) -> None:
        if "/api/" in asked.url or (asked.resource_type == "script" and ".worker-" not in asked.url):
            self._asked.add(asked)  # a worker's own script is never said to have come

    def _heard(self, kind: str, text: str) -> None:
        if kind == "error" and "Failed to load resource" not in text:
            self.errors.append(text)

    def open(self, address: str, hash: str = "#/runs") -> Page:
        self.tab.goto(f"{address}{hash}")
        self.tab.wait_for_selector("main[id=main] *", state="attached")  # a pane may be out of sight
        return self

    def let_pass(self, ms: int) -> Page:
        """By the page's own clock: what the page does in less time, it has done then, however slow the machine is."""
        self.tab.evaluate("ms => new Promise(done => setTimeout(done, ms))", ms)
        return self

    def settled(self, *others: Page) -> Page:
        """Wait until it, and others, asked nothing for half a second (a worker keeps "networkidle" from coming).

        Longer than a click waits for a second one, a field for the next letter, and the address for the next change.
        """
        for page in (self, *others):
            page.tab.wait_for_selector("main[id=main]:not([aria-busy=true])", state="attached")
        quiet, ticks = 0, 0
        while quiet < 5 and ticks < 10 * PATIENCE:
            self.let_pass(100)
            ticks += 1
            quiet = 0 if any(page._asked for page in (self, *others)) else quiet + 1
        assert quiet == 5, f"still asking: {[asked.url for page in (self, *others) for asked in page._asked]}"
        return self

    def drawn(self, many: int = 1) -> Page:
        """Wait until some charts have ink."""
        self.tab.wait_for_function(
            """many => [...document.querySelectorAll('.plotarea .clip canvas')].filter(c => {
                if (c.width < 2) return false;
                const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
                return data.some((v, i) => i % 4 === 3 && v > 0);
            }).length >= many""",
            arg=many,
        )
        return self


@pytest.fixture
def tab_of(browser: Any) -> Iterator[Callable[[int, int], Page]]:
    """Opens tabs of any size."""
    contexts = []

    def make(width: int, height: int) -> Page:
        contexts.append(browser.new_context(viewport={"width": width, "height": height}))
        return Page(contexts[-1].new_page())

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Page]:
    """A tab at 1440 x 900."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = Page(context.new_page())
    yield page
    context.close()


@pytest.fixture
def phone(browser: Any) -> Iterator[Page]:
    """390 x 844, under a finger, in the dark."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, color_scheme="dark"
    )
    page = Page(context.new_page())
    yield page
    context.close()
