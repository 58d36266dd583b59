"""Pictures whose training and keeper both died: readable at once, told of, and made into files by who comes next."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from forked_programs import Interpreter
from rollbook.book.repair.doctor import repair, verify
from rollbook.errors import UnknownKey
from rollbook.keeper.main import Keeper

BODY = """
import os, signal, numpy, rollbook
run = rollbook.init("p", "n", dir={root!r}, sinks=[], keeper="inline")
for i in range(5):
    run.log_image("view", numpy.full((4, 6, 3), i, numpy.uint8), env_step=i)
run.log_video("film", numpy.stack([numpy.full((4, 6, 3), i, numpy.uint8) for i in range(3)]), env_step=9)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, interpreter: Interpreter) -> Path:
    root = tmp_path_factory.mktemp("killed")
    assert interpreter.run(BODY.format(root=str(root)), env=os.environ).returncode == -signal.SIGKILL
    return root


@pytest.fixture
def book(killed: Path, tmp_path: Path) -> Any:
    shutil.copytree(killed, tmp_path / "runs")
    return rollbook.open(tmp_path / "runs")[0]


def files(book: Any) -> list[str]:
    return sorted(name for name in os.listdir(book.path / "media") if not name.startswith("."))


def test_their_pixels_can_be_read_meanwhile(book: Any) -> None:
    rows = book.media().to_pylist()
    assert len(rows) == 6
    assert all(row["file"].startswith("media/.spool/") for row in rows)
    assert [int(book.pixels(row["path"])[0, 0, 0, 0]) for row in rows[:5]] == [0, 1, 2, 3, 4]
    film = book.pixels(rows[5]["path"])
    assert (film.shape, film.dtype) == ((3, 4, 6, 3), np.uint8)
    with pytest.raises(UnknownKey, match="no raw pixels"):
        book.pixels("media/another.png")
    said = verify(book.path)
    assert [text for text in said if "not there any more" in text] == []
    assert len([text for text in said if "6 pictures and videos wait" in text]) == 1


@pytest.mark.parametrize("who", ["repair", "keeper", "resume"])
def test_the_next_keeper_makes_files_of_them(book: Any, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    if who == "repair":
        assert "pictures and videos made of their pixels: 6" in repair(book.path)
    elif who == "keeper":
        Keeper(book.path).run_to_end()
    else:
        rollbook.init("p", "n", dir=book.path.parents[1], sinks=[], keeper="inline", resume="must").finish()
    assert len(files(book)) == 6
    assert all(row["file"] in {f"media/{name}" for name in files(book)} for row in book.media().to_pylist())
    assert [text for text in verify(book.path) if "media" in text or "pictures" in text] == []
