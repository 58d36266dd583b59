"""What the program printed and what was not committed, on the page: live, on a phone, in the dark, by keyboard, in a
copy."""

from __future__ import annotations

import functools
import http.server
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.run.origin.patch import keep_patch
from rollbook.server.static_copy import export

PATCH = "diff --git a/net.py b/net.py\n--- a/net.py\n+++ b/net.py\n@@ -1 +1 @@\n-width = 64\n+width = 128\n"
LOG = ".logbox[role=log]"


def open_run(folder: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder.parent)  # the code of these tests is a repository, too
        patch.setattr(sys, "argv", ["train.py", "--lr", "0.1"])  # with several workers it would be "-c"
        run = rollbook.init("study", "ppo", seed=1, dir=folder, sinks=[], keeper="inline", rules=())
    run.log({"train/return": 1.0}, env_step=1)
    console: Any = run._parts.console
    console.take("", "".join(f"epoch {n}\n" for n in range(40)))
    console.take("!", "UserWarning: careful\n")
    facts = keep_patch(str(run.folder), 1, {"text": PATCH, "untracked": ["idea.txt"], "files_untracked": 1})
    run._about.git = {"commit": "a" * 40, "dirty": True, **facts}
    run._write_about()
    return run


def says(page: Any, words: str) -> None:
    page.tab.wait_for_function(
        "([box, words]) => document.querySelector(box)?.textContent.includes(words)", arg=[LOG, words]
    )


def test_what_is_printed_comes_to_the_page_and_a_bar_moves_in_its_line(page: Any, serve: Any, tmp_path: Path) -> None:
    run = open_run(tmp_path / "runs")
    console: Any = run._parts.console
    page.open(serve(tmp_path / "runs"), f"#/health?run={run.id}")
    says(page, "UserWarning: careful")
    page.settled()  # it hears the file now
    for n in (10, 50, 90):
        console.take("!", f"\r{n}%|####|")
        console.settle()
        says(page, f"{n}%|####|")
    console.take("!", "\r100%|####|\n")
    console.take("", "the last epoch 40\n")
    console.settle()
    says(page, "the last")
    lines = page.tab.locator(f"{LOG} > div").all_inner_texts()
    assert sum("%|####|" in line for line in lines) == 1
    assert [line.split()[-1] for line in lines if "epoch" in line] == [str(n) for n in range(41)]
    assert page.errors == []
    run.finish()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept") / "runs"
    open_run(folder).finish("crashed")
    return folder


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
def test_the_log_is_searched_by_keyboard_on_any_screen(
    width: int, height: int, finished: Path, serve: Any, tab_of: Any
) -> None:
    page = tab_of(width, height)
    page.tab.emulate_media(color_scheme="dark")
    page.open(serve(finished), f"#/health?run={rollbook.open(finished).one().id}")
    says(page, "epoch 39")
    page.tab.get_by_label("Find in the log").focus()
    page.tab.keyboard.type("careful")
    page.tab.wait_for_function(
        "box => { const all = [...document.querySelectorAll(box + ' > div')];"
        " return all.length === 1 && all[0].textContent.includes('careful'); }",
        arg=LOG,
    )
    assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.errors == []


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
def test_a_runs_page_has_its_uncommitted_changes_and_what_resumes_it(
    width: int, height: int, finished: Path, serve: Any, tab_of: Any
) -> None:
    page = tab_of(width, height)
    identity = rollbook.open(finished).one().id
    page.open(serve(finished), f"#/run/{identity}")
    patch = page.tab.locator(".patch")
    patch.wait_for()
    assert "+width = 128" in patch.inner_text()
    assert page.tab.locator(".patch .added").inner_text() == "+width = 128"
    assert "idea.txt" in page.tab.inner_text("main")
    code = page.tab.locator("dt", has_text="code").locator("+ dd").inner_text()
    assert code == f"{'a' * 40}, 1 unknown to git"
    says(page, "UserWarning: careful")
    assert f"ROLLBOOK_RESUME={identity}" in page.tab.inner_text("main")
    assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.errors == []


@pytest.fixture(scope="module")
def copied(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("copied") / "copy"
    export([str(finished)], folder)
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    handler = functools.partial(quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_copy_has_both(copied: str, finished: Path, page: Any) -> None:
    identity = rollbook.open(finished).one().id
    page.open(copied, f"#/run/{identity}")
    page.tab.locator(".patch .added").wait_for()
    page.open(copied, f"#/health?run={identity}")
    says(page, "UserWarning: careful")
    assert page.errors == []
