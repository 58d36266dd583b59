"""What people do in a notebook, in a real kernel. Its environment has no ipywidgets, as many have not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from waiting import PATIENCE, until

CELLS = {
    "a run is recorded": """
import random, rollbook
run = rollbook.init("nb", "ppo", seed=0, config={"lr": 1e-3}, total={"env_step": 1000})
for step in range(0, 1000, 10):
    run.log({"train/return": step / 10 + random.random()}, env_step=step)
run""",
    "it is finished": "run.finish(); run",
    "runs are listed": 'runs = rollbook.open("runs"); runs',
    "one is chosen": 'book = runs.one("nb/ppo", newest=True); book',
    "rows": 'book.metrics(["train/return"], x="env_step").num_rows',
    "SQL": 'book.sql("select count(*) from metrics").fetchall()',
    "the table of runs": "runs.table()",
    "a comparison": """
for algo in "ab":
    for seed in range(3):
        with rollbook.init("nb", algo, seed=seed, config={"algo": algo}, sinks=[]) as run:
            run.log_many({"test/return": [float(seed), 1.0 + seed]}, env_step=[1, 2])
study = rollbook.open("runs").where("config.algo is not null")
study.compare("test/return", "config.algo")""",
    "a picture": 'study.plot("test/return", by="config.algo")',
    "a loop that is interrupted": """
run = rollbook.init("nb", "loop", sinks=[])
step = 0
while True:
    run.log({"loss": 1.0}, env_step=step)
    step += 1""",
    "and what it left": """
run.finish("killed")
assert rollbook.open("runs").one("nb/loop").metrics(["loss"]).num_rows in (step, step + 1), step
step""",
}
SHOWN = {"a run is recorded", "it is finished", "runs are listed", "one is chosen", "a comparison", "a picture"}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any, Path]]:
    """A kernel, a client of it, and the folder it works in."""
    from jupyter_client.manager import KernelManager

    folder = tmp_path_factory.mktemp("notebook")
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder), env={**os.environ, "ROLLBOOK_DIR": str(folder / "runs")})
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=PATIENCE)
    yield manager, client, folder
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.long
def test_each_cell_does_what_is_asked_and_shows_it(kernel: tuple[Any, Any, Path]) -> None:
    manager, client, folder = kernel
    for name, code in CELLS.items():
        shown: list[str] = []
        is_loop = "while True" in code

        def show(message: dict[str, Any], shown: list[str] = shown) -> None:
            if message["msg_type"] in ("display_data", "execute_result"):
                shown.extend(message["content"]["data"])

        if is_loop:
            asked = client.execute(code, stop_on_error=False)  # else the next cell may be dropped with it
            until(lambda: next((folder / "runs").glob("nb/loop-*/data/*/metrics*"), None), "rows of the loop")
            manager.interrupt_kernel()
            reply = client._recv_reply(asked, timeout=PATIENCE)
        else:
            reply = client.execute_interactive(code, timeout=PATIENCE, output_hook=show)
        content = reply["content"]
        assert content["status"] == "ok" or (is_loop and content["ename"] == "KeyboardInterrupt"), (name, content)
        assert ("text/html" in shown) == (name in SHOWN), (name, shown)


@pytest.mark.long
def test_cells_go_on_with_the_run_that_is_open_and_a_restarted_kernel_begins_its_own(
    kernel: tuple[Any, Any, Path],
) -> None:
    """One run over several cells, a second `init`, the loop over seeds typed again, a cell that fails, a restart."""
    manager, client, folder = kernel

    def cell(code: str, fails: str = "") -> None:
        content = client.execute_interactive(code, timeout=PATIENCE, output_hook=lambda _: None)["content"]
        assert content.get("ename", "") == fails, content

    begin = "run = rollbook.init('cells', 'ppo', seed={}, sinks=[])"
    cell("import rollbook")
    cell(begin.format(0))
    cell("run.log({'loss': 1.0}, env_step=1)")
    cell("rollbook.log({'loss': 2.0}, env_step=2)")
    cell("1 / 0", fails="ZeroDivisionError")
    cell("run.log({'loss': 3.0}, env_step=3)")
    cell(begin.format(1))
    cell("run.log({'loss': 4.0}, env_step=1); run.save_checkpoint({'weights': [1.0]})")
    cell("run.log({'loss': 9.0}, env_step=2)")
    manager.restart_kernel(now=True)
    client.wait_for_ready(timeout=PATIENCE)
    cell("import rollbook")
    cell("run = rollbook.init('cells', 'ppo', seed=1, resume='must', sinks=[]); run.restore()")
    cell("run.log({'loss': 5.0}, env_step=2)")
    cell("run = rollbook.init('cells', 'ppo', seed=2, sinks=[]); run.log({'loss': 6.0}, env_step=1); run.finish()")

    def books() -> list[tuple[Any, ...]]:
        found = rollbook.open(folder / "runs").where("project = 'cells'")
        return sorted(
            (book.seed, book.status, len(book.attempts), book.metrics(["loss"])["loss"].to_pylist()) for book in found
        )

    assert books() == [
        (0, "finished", 1, [1.0, 2.0, 3.0]),
        (1, "finished", 2, [4.0, 5.0]),
        (2, "finished", 1, [6.0]),
    ]


def test_a_notebook_shows_the_line_of_the_user_and_the_message_alone(tmp_path: Path) -> None:
    with pytest.raises(rollbook.errors.RollbookError) as caught:
        rollbook.open(tmp_path / "nowhere")
    lines = "\n".join(caught.value._render_traceback_()).splitlines()
    assert lines[0].startswith(f'  File "{__file__}"')
    assert lines[1].strip() == 'rollbook.open(tmp_path / "nowhere")'
    assert [line for line in lines if str(Path(rollbook.__file__).parent) in line] == []
    assert lines[-1].startswith("RunNotFound: ")
