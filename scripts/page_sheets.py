#!/usr/bin/env python3
"""Takes the sheets of docs/pages.md: each page light, dark and on a phone, and the same page of an older rollbook.

    python scripts/page_sheets.py studies                        # a folder of folders of runs: sweep, seeds, rollouts …
    python scripts/page_sheets.py studies --before ../old cause  # beside an older checkout, its page built; one sheet
    python scripts/page_sheets.py studies --all pictures         # every study on every page, as plain pictures

Needs what scripts/page_pictures.py needs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from page_browser import browser as chromium_here
from page_pictures import IMAGES, settled
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Browser, sync_playwright

import rollbook
from rollbook.formats.foreign import follow
from rollbook.server.serving import listen
from rollbook.server.settings import ServerSettings

SCREENS = {"light": ("light", (1200, 750)), "dark": ("dark", (1200, 750)), "phone": ("light", (390, 844))}
BYTES = 110_000


class View(NamedTuple):
    """Where a page of a sheet is.

    Attributes:
      study: the folder below the studies.
      hash: the address below the page's own; {run} is the newest run that fits.
      fits: a condition of `RunSet.where`.
      before: the address in the older page; "": it has no such page.
      key: what is pressed there.
      see: what is scrolled into sight there.
    """

    study: str
    hash: str
    before: str = ""
    fits: str = ""
    key: str = ""
    see: str = ""


VIEWS = {
    "runs": View("sweep", "runs", "runs"),
    "cause": View("seeds", *["runs?cause={run},env_step,6000,train/return"] * 2, "status = 'finished'"),
    "crash": View("seeds", *["runs?cause={run},env_step,8960,train/return"] * 2, "status = 'crashed'"),
    "compare": View("seeds", "compare", "compare"),
    "sweep": View("sweep", "sweep"),
    "episodes": View("seeds", *["episodes?run={run}"] * 2, "status = 'finished'"),
    "samples": View("rollouts", *["samples?run={run}"] * 2, "name = 'samples'"),
    "rollouts": View("rollouts", "rollouts?run={run}", fits="name = 'grpo'"),
    "prompts": View("rollouts", "rollouts?run={run}&tab=tasks", fits="name = 'grpo'"),
    "rollout": View(
        "rollouts", "rollouts?run={run}&where=used&open=1", fits="name = 'agent'", see="[aria-label='One rollout']"
    ),
    "fates": View("rollouts", "rollouts?run={run}&tab=fates", fits="name = 'grpo'"),
    "timings": View("killed", *["timings?run={run}"] * 2, "seed = 1"),
    "health": View("seeds", "health", "health?run={run}", "status = 'crashed'"),
    "palette": View("sweep", "runs", "runs", key="/"),
}


def main() -> None:
    """Write docs/images/pages/NAME.webp."""
    parser = argparse.ArgumentParser(description="Take the sheets of docs/pages.md")
    parser.add_argument("studies", type=Path, help="a folder of folders of runs")
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(VIEWS)}")
    parser.add_argument("--before", type=Path, help="an older checkout, its page built")
    parser.add_argument("--all", type=Path, help="a folder: every study on every page")
    given = parser.parse_intermixed_args()
    chromium = chromium_here()
    if chromium is None:
        raise SystemExit("no chromium here: make test-page says what to install")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in given.names or VIEWS:
            view = VIEWS[name]
            if given.all is not None:
                every(browser, given.studies, name, view, given.all)
                continue
            study = given.studies / view.study
            with listen(settings(study)) as server:
                now = [shot(browser, server.address, study, view, *screen) for screen in SCREENS.values()]
            then = None
            if given.before is not None and view.before:
                with older(given.before, study) as address:
                    then = shot(browser, address, study, view._replace(hash=view.before), *SCREENS["light"])
            save(sheet(*now, then), IMAGES / "pages" / f"{name}.webp")
        browser.close()


def every(browser: Browser, studies: Path, name: str, view: View, out: Path) -> None:
    """OUT/STUDY-NAME-SCREEN.png of every study; of another study than the view's, the newest run."""
    out.mkdir(parents=True, exist_ok=True)
    for study in sorted(path for path in studies.iterdir() if path.is_dir()):
        own = view if study.name == view.study else view._replace(fits="")
        with listen(settings(study)) as server:
            for word, (theme, size) in SCREENS.items():
                shot(browser, server.address, study, own, theme, size).save(out / f"{study.name}-{name}-{word}.png")


def settings(study: Path) -> ServerSettings:
    """A server of the runs of a study; of other tools too."""
    other = follow(study, waits=True)
    return ServerSettings(roots=(str(study), *([] if other is None else [other])), port=0, title=study.name)


def shot(browser: Browser, address: str, study: Path, view: View, theme: str, size: tuple[int, int]) -> Image.Image:
    """One picture of a view."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, device_scale_factor=1)
    found = rollbook.open(study)
    runs = iter(found.where(view.fits) if view.fits else found) if "{run}" in view.hash else iter(())
    run = getattr(next(runs, None), "id", "")
    tab = settled(context, f"{address}?theme={theme}#/{view.hash.format(run=run)}")
    if view.key:
        tab.keyboard.press(view.key)
    if view.see:
        tab.locator(view.see).evaluate_all("every => every[0]?.scrollIntoView()")
    tab.wait_for_timeout(700)
    picture = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
    context.close()
    return picture


OLDER = """import sys
from rollbook.server import settings
from rollbook.server.serving import listen
of = getattr(settings, "ServerSettings", None) or settings.Settings  # as it was called before
with listen(of(roots=(sys.argv[1],), port=0, title=sys.argv[2])) as server:
    print(server.address, flush=True)
    sys.stdin.read()"""


@contextlib.contextmanager
def older(checkout: Path, study: Path) -> Iterator[str]:
    """The page of an older checkout over the same folder; its address."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-c", OLDER, str(study), study.name]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        yield it.stdout.readline().strip()
        it.communicate()


def sheet(light: Image.Image, dark: Image.Image, phone: Image.Image, before: Image.Image | None) -> Image.Image:
    """Light and phone above; dark, and what there was before, below."""
    gap, head = 16, 22
    narrow = phone.resize((round(phone.width * light.height / phone.height), light.height), Image.Resampling.LANCZOS)
    width = light.width + gap + narrow.width
    half = ((width - gap) // 2, round((width - gap) // 2 * light.height / light.width))
    whole = Image.new("RGB", (width, 2 * head + light.height + half[1]), "white")
    write = ImageDraw.Draw(whole).text
    font = ImageFont.load_default(14)
    below = [("now, dark", dark), ("before", before) if before is not None else ("before: no such page", None)]
    for word, picture, x, y in (("now", light, 0, 0), ("on a phone", narrow, light.width + gap, 0)):
        write((x, y + 2), word, "black", font)
        whole.paste(picture, (x, y + head))
    for n, (word, picture) in enumerate(below):
        x, y = n * (half[0] + gap), head + light.height
        write((x, y + 2), word, "black", font)
        if picture is not None:
            whole.paste(picture.resize(half, Image.Resampling.LANCZOS), (x, y + head))
    return whole


def save(picture: Image.Image, path: Path) -> None:
    """As sharp as its bytes allow."""
    path.parent.mkdir(exist_ok=True)
    for quality in range(80, 0, -5):
        picture.save(path, quality=quality, method=6)
        if path.stat().st_size <= BYTES:
            print(f"{path.name}: {path.stat().st_size // 1000} kB, quality {quality}", flush=True)
            return


if __name__ == "__main__":
    main()
