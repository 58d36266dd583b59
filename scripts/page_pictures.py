#!/usr/bin/env python3
"""Takes the pictures of the page for README.md (a short animation, light and dark) and for the gallery.

    rollbook demo --seeds 5 --dir shown && python examples/sb3_ppo.py …     # whatever should be seen
    python scripts/page_pictures.py shown

    python scripts/page_pictures.py --gallery build/gallery                  # docs/images/gallery, from `make gallery`
    python examples/gallery/grpo.py && python scripts/page_pictures.py --guide runs       # of docs/guides/grpo.md

Needs what `make test-page` installs (playwright and a chromium) and Pillow. The animation is what a hand does: it moves
over a chart, zooms in, and asks what happened at a point.
"""

from __future__ import annotations

import argparse
import functools
import io
import threading
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from page_browser import browser as chromium_here
from PIL import Image
from playwright.sync_api import sync_playwright

from gallery import VIEWS
from rollbook.server.serving import listen
from rollbook.server.settings import ServerSettings

IMAGES = Path(__file__).parent.parent / "docs" / "images"
SMALL = {"width": 960, "height": 600}
THUMB = {"width": 1120, "height": 660}
FRAME_MS = 90
GUIDE = {"rollouts": ("", "jj→jjj"), "prompts": ("?tab=tasks", "jj")}
"""Picture of docs/guides/grpo.md -> its address on the page Rollouts, and the keys to press there."""


def main() -> None:
    """Write docs/images/page-light.webp and page-dark.webp."""
    parser = argparse.ArgumentParser(description="Take the pictures of the page for README.md")
    parser.add_argument("runs", nargs="?", help="a folder with runs; those of its first project are shown")
    parser.add_argument("--gallery", type=Path, help="the copies of the gallery, instead: a small picture of each")
    parser.add_argument("--guide", action="store_true", help="the pictures of docs/guides/grpo.md, instead")
    parser.add_argument("--view", default="", help="what to add to the address, such as s=0.6&g=config.algo")
    given = parser.parse_args()
    chromium = chromium_here()
    if chromium is None:
        raise SystemExit("no chromium here: make test-page says what to install")
    if given.gallery is not None:
        small(given.gallery, chromium)
        return
    if given.runs is None:
        parser.error("name a folder with runs, or --gallery")
    with listen(ServerSettings(roots=(given.runs,), port=0, title="runs")) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for ground in ("light", "dark"):
            if given.guide:
                guided(browser, server.address, ground)
                continue
            moving(browser, server.address, ground, f"#/runs?{given.view}")
        browser.close()


def small(copies: Path, chromium: str) -> None:
    """Write docs/images/gallery/NAME-{light,dark}.webp: the view that each copy opens on."""
    handler = functools.partial(QuietHandler, directory=str(copies))
    (IMAGES / "gallery").mkdir(exist_ok=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, view in VIEWS.items():
            for ground in ("light", "dark") if (copies / name).is_dir() else ():
                context = browser.new_context(viewport=THUMB, device_scale_factor=1.25)
                tab = settled(context, f"http://127.0.0.1:{server.server_port}/{name}/?theme={ground}#/{view}")
                picture = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
                picture.save(IMAGES / "gallery" / f"{name}-{ground}.webp", quality=75, method=6)
                context.close()
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    """Says nothing about each request."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


def guided(browser: Any, address: str, ground: str) -> None:
    """The pictures of docs/guides/grpo.md."""
    for name, (view, keys) in GUIDE.items():
        context = browser.new_context(viewport=THUMB, device_scale_factor=1.25)
        tab = context.new_page()
        rest = watched(tab)
        tab.goto(f"{address}?theme={ground}#/rollouts{view}")
        rest()
        for key in keys:
            tab.keyboard.press({"→": "ArrowRight"}.get(key, key))
            rest()  # the next key acts on what this one has opened
        picture = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
        picture.save(IMAGES / f"grpo-{name}-{ground}.webp", quality=50, method=6)
        context.close()


def opened(context: Any, address: str, ground: str, view: str) -> Any:
    """A tab in which the charts are drawn and nothing is being asked for."""
    tab = settled(context, f"{address}?theme={ground}{view}")
    tab.wait_for_selector(".plotarea canvas")
    return tab


def settled(context: Any, address: str) -> Any:
    """A tab in which nothing is being asked for."""
    tab = context.new_page()
    rest = watched(tab)
    tab.goto(address)
    rest()
    return tab


def watched(tab: Any) -> Callable[[], None]:
    """What waits until a tab asks for nothing for most of a second, and its videos show something."""
    asked: set[Any] = set()
    tab.on("request", lambda one: ("/api/" in one.url or "/data/" in one.url) and asked.add(one))
    tab.on("requestfinished", lambda one: asked.discard(one))
    tab.on("requestfailed", lambda one: asked.discard(one))

    def rest() -> None:
        quiet = 0
        while quiet < 8:
            tab.wait_for_timeout(100)
            quiet = 0 if asked else quiet + 1
        videos_there(tab)

    return rest


def videos_there(tab: Any) -> None:
    """Wait until videos show their first picture."""
    there = "video => video.readyState > 1 || video.complete"
    tab.wait_for_function(f"[...document.querySelectorAll('.video:not(p)')].every({there})", timeout=60_000)


def moving(browser: Any, address: str, ground: str, view: str) -> None:
    """A hand over the first chart: hover, zoom, then a click and what it finds."""
    context = browser.new_context(viewport=SMALL)
    tab = opened(context, address, ground, view)
    frames: list[Image.Image] = []

    def shot(times: int = 1) -> None:
        frames.extend([Image.open(io.BytesIO(tab.screenshot())).convert("RGB")] * times)

    box = tab.locator(".slot.big .plotarea").first.bounding_box()
    left, top = box["x"] + 44, box["y"] + box["height"] * 0.45
    width = box["width"] - 150
    shot(6)
    for step in range(9):
        tab.mouse.move(left + width * (0.12 + 0.06 * step), top)
        tab.wait_for_timeout(60)
        shot()
    tab.keyboard.down("Control")
    for _ in range(8):
        tab.mouse.wheel(0, -35)
        tab.wait_for_timeout(50)
        shot()
    tab.keyboard.up("Control")
    tab.wait_for_timeout(700)
    shot(5)
    tab.mouse.click(left + width * 0.6, top)
    tab.wait_for_selector("#cause section.causehead p")
    tab.mouse.move(8, 8)  # nothing under it has anything to show
    tab.wait_for_timeout(900)
    videos_there(tab)
    shot(18)
    frames[0].save(
        IMAGES / f"page-{ground}.webp",
        save_all=True,
        append_images=frames[1:],
        duration=FRAME_MS,
        loop=0,
        quality=58,
        method=5,
    )
    context.close()


if __name__ == "__main__":
    main()
