"""The frameworks' own tests of their loggers, with ours in the place of theirs.

The tests are not part of this repository: they are read from checkouts of the projects, folders stable-baselines3,
tianshou, acme, tensorboardX and DI-engine below $ROLLBOOK_UPSTREAM. Each test that comes out otherwise than upstream's
is listed here with the reason.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import rollbook

GROUPS = ("main", "lightzero")

HERE = Path(__file__).parent
GROUP = os.environ.get("ROLLBOOK_FRAMEWORK_GROUP") or "main"
PLACE = os.environ.get("ROLLBOOK_UPSTREAM", "")


@dataclass(frozen=True)
class Suite:
    """Test files of one project.

    Attributes:
      files: below the folder of the checkout.
      group: the environment that it needs.
      differences: pattern of a test's name -> why it comes out otherwise with ours.
      missing: pattern -> what the environment lacks; such a test fails with upstream's own code as well.
      chosen: which tests, as pytest's -k; "" for all.
      flaky: pattern -> why it may fail on a busy machine.
    """

    project: str
    files: tuple[str, ...]
    group: str = "main"
    differences: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    flaky: dict[str, str] = field(default_factory=dict)
    chosen: str = ""


FPS = {r"test_fps_logger": "measures frames per second against the wall clock"}
_X = {
    r"WriterTest::test_flush": "looks inside of tensorboardX's own EventFileWriter (_ev_writer)",
    r"GlobalWriterTest::": "GlobalSummaryWriter is built from SummaryWriter: looks inside of EventFileWriter, too",
    r"WriterTest::test_writer_with_default_metadata": "mocks tensorboardX's own EventFileWriter",
    r"PytorchGraphTest::test_wrong_input_size": "a verb that fails is counted, it does not raise into the program",
}

SUITES = {
    "stable-baselines3": Suite(
        "stable-baselines3",
        ("tests/test_logger.py", "tests/test_monitor.py", "tests/test_tensorboard.py", "tests/test_vec_monitor.py"),
        flaky=FPS,
    ),
    "stable-baselines3, callbacks": Suite(
        "stable-baselines3",
        ("tests/test_callbacks.py",),
        missing={r"test_callbacks\[": "tqdm and rich, for the progress bar"},
    ),
    "tianshou": Suite("tianshou", ("test/base/test_logger.py",)),
    "acme": Suite(
        "acme",
        (
            *(f"acme/utils/loggers/{name}_test.py" for name in ("csv", "filters", "terminal")),
            *(f"acme/utils/{name}_test.py" for name in ("counting", "paths")),
        ),
        differences={
            r"test_parent_prefix": "get_steps_key() of a prefixed child names a key that get_counts() holds",
            r"test_unique_id_with_flag": "no absl flag is defined: Acme's own is read where Acme defined it",
        },
    ),
    # Spinning Up's only test trains with TensorFlow 1, and LightZero's have nothing to do with what is logged.
    "DI-engine": Suite(
        "DI-engine",
        ("ding/utils/tests/test_log_helper.py", "ding/framework/middleware/tests/test_logger.py"),
        group="lightzero",
        chosen="not wandb",  # those two log in to a service
    ),
    "DI-engine, learners": Suite(
        "DI-engine",
        tuple(f"ding/worker/learner/tests/test_{name}.py" for name in ("base_learner", "learner_hook")),
        group="lightzero",
    ),
    "tensorboardX": Suite(
        "tensorboardX",
        tuple(
            f"tests/{name}.py"
            for name in (
                *("test_writer", "test_summary_writer", "test_hparams", "test_figure", "test_pr_curve", "test_numpy"),
                *("test_pytorch_np", "test_pytorch_graph", "test_utils", "event_file_writer_test"),
                "test_multiprocess_write",
            )
        ),
        differences=_X,
    ),
}


def outcomes(suite: Suite, place: Path) -> dict[str, str]:
    """Name of a test -> "" if it passed or was skipped, else what it said."""
    report = place / "report.xml"
    env = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join((str(Path(rollbook.__file__).parents[1]), str(HERE))),
        PYTHONDONTWRITEBYTECODE="1",
        ROLLBOOK_SWAP=suite.project,
    )
    files = [str(Path(PLACE, suite.project, file)) for file in suite.files]
    command = [sys.executable, "-m", "pytest", "-p", "upstream_swap", "-c", os.devnull, "-q", "-p", "no:cacheprovider"]
    command += ["--import-mode=importlib", "--timeout=120", "-W", "ignore", f"--junitxml={report}", *files]
    command += ["-k", suite.chosen] if suite.chosen else []
    if suite.project == "tensorboardX":  # its tests import a module from beside them
        command.remove("--import-mode=importlib")
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 1), (done.stdout + done.stderr)[-4000:]
    found = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        bad = [part for part in case if part.tag in ("failure", "error")]
        name = f"{(case.get('classname') or '').rpartition('.')[2]}::{case.get('name')}"
        found[name] = (bad[0].get("message") or "it failed")[:300] if bad else ""
    return found


@pytest.mark.parametrize("name", [name for name, suite in SUITES.items() if suite.group == GROUP])
def test_the_frameworks_own_tests_pass_with_ours_but_for_the_differences_listed(
    name: str, own_place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = SUITES[name]
    if not PLACE or not all(Path(PLACE, suite.project, file).exists() for file in suite.files):
        pytest.skip(f"there is no checkout of {suite.project}: put it into $ROLLBOOK_UPSTREAM/{suite.project}")
    found = outcomes(suite, own_place)
    failed = {test: said for test, said in found.items() if said}
    expected = {**suite.differences, **suite.missing}
    unexpected = {
        test: said
        for test, said in failed.items()
        if not any(re.search(pattern, test) for pattern in (*expected, *suite.flaky))
    }
    mended = [pattern for pattern in suite.differences if not any(re.search(pattern, test) for test in failed)]
    with capsys.disabled():
        print(f"\n{name}: {len(found)} tests of upstream, {len(found) - len(failed)} pass, {len(failed)} differ")
    assert unexpected == {}
    assert mended == [], "these differences are gone: take them off the list"
    assert len(found) > 4
