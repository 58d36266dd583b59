"""A folder's name is any bytes, and a process may read them by the encoding of an old locale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook
from cases import some_of

SCRIPT = """
import json, sys, rollbook
for folder in sys.argv[1:]:
    for keeper in ["process", "inline"]:
        run = rollbook.init("p", keeper, dir=folder, sinks=[], keeper=keeper)
        for i in range(50):
            run.log({"x": float(i)}, env_step=i)
        run.save_checkpoint({"a": 1})
        run.log_text("words", "some")
        run.finish()
        book = rollbook.open(folder).one("p/" + keeper)
        if keeper == "inline":  # one of each folder
            assert book.sql("select count(x) from metrics").fetchall() == [(50,)]
        print(json.dumps([book.metrics(["x"]).num_rows, book.problems(), run.bill()["drops"], book.status]))
"""
NAMES = [b"r\xc3\xbcns", b"r\xffns", b"r ns\n%41'\"", b"[r]*?{a,b}$x"]


@pytest.mark.parametrize(
    "variables",
    some_of(
        [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"ROLLBOOK_KEEPER": "run"}],
        1,
        ids=["ASCII, a shared keeper", "UTF-8, a keeper a run"],
    ),
)
def test_a_run_is_recorded_sealed_and_read_whatever_its_folder_is_called(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    environment = {**os.environ, **variables}
    if subprocess.run([sys.executable, "-c", ""], env=environment, capture_output=True, check=False).returncode:
        pytest.skip("this Python does not start here: it lies in a folder whose name its locale cannot write")
    folders = [os.path.join(os.fsencode(tmp_path), name) for name in NAMES]
    command = [sys.executable, "-c", SCRIPT, *folders]
    ran = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert told == [[50, [], {}, "finished"]] * 2 * len(NAMES), ran.stderr.decode()
    for folder in folders:
        for run in os.scandir(os.path.join(folder, b"p")):
            assert not os.path.exists(os.path.join(run.path, b"data", b"journal")), "all is sealed"


NAMED = """
import sys, rollbook
for name in ["läufer", "名前", "🚀", sys.argv[1]]:
    run = rollbook.init("projekt-ü", name, dir="läufe", sinks=[], keeper="inline", config={"ä": "ö"})
    run.log({"länge": 1.0}, env_step=1)
    run.finish()
run = rollbook.init("projekt-ü", "名前", dir="läufe", sinks=[], keeper="inline", resume="must")
run.log({"länge": 2.0}, env_step=2)
"""


def test_a_name_that_the_locale_cannot_write_is_the_run_s_name_and_its_folder_is_as_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(NAMED, encoding="utf-8")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "program.py", "größe".encode()]
    if subprocess.run([sys.executable, "-c", ""], env=environment, capture_output=True, check=False).returncode:
        pytest.skip("this Python does not start here: it lies in a folder whose name its locale cannot write")
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    for name, rows in [("läufer", 1), ("名前", 2), ("🚀", 1), ("größe", 1)]:
        (folder,) = (tmp_path / "läufe" / "projekt-ü").glob(f"{name}-*")
        book = rollbook.open(folder).one()
        assert (book.info.project, book.info.name) == ("projekt-ü", name)
        assert book.metrics(["länge"]).num_rows == rows
        assert book.status == "finished"
        assert not book.problems()
