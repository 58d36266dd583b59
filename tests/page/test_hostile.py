"""What a run says about itself is hostile input: in the real browser it is text and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

import rollbook

PAYLOADS = [
    '<img src=x onerror="window.pwned=1">',
    '"><svg onload=window.pwned=1>',
    "</script><script>window.pwned=1</script>",
    "javascript:window.pwned=1",
    "{{constructor.constructor('window.pwned=1')()}}",
    "'-window.pwned-'\u202e\u0000",
]
PAGES = [
    "runs?g=none",
    "runs?g=config.x",
    "run/{run}",
    "compare",
    "episodes?run={run}",
    "samples?run={run}",
    "timings?run={run}",
]
PAGES += [
    "runs?g=none&cols=status~host~tags~notes~group~job_type~config.x",
    "health",
    "health?run={run}",
    "sql?run={run}",
    "samples?run={run}&tab=new",
    "runs?g=none&show={run}.1&cause={run},env_step,20,{key}",
    "runs?g=none&show={run}.1~{other}.2&full={hostile_key}",
    "compare?show={run}.1~{other}.2",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Runs with a payload in every field that a script can fill; and their ids."""
    folder = tmp_path_factory.mktemp("hostile") / "runs"
    ids = []
    for i, payload in enumerate(PAYLOADS):
        config = {"x": payload, payload: {"deep": payload}}
        with rollbook.init(
            "hostile", f"run-{i}", seed=i, config=config, notes=payload, tags=[payload], dir=folder, sinks=[]
        ) as run:
            ids.append(run.id)
            for step in range(40):
                run.log({"train/return": float(step), f"a/{payload}": float(step)}, env_step=step)
            run.log_text(payload, payload)
            run.note(payload)
            run.log_samples(
                [payload] * 4,
                group=payload,
                completion=[payload] * 4,
                reward=[1.0, 0.0, 1.0, 0.0],
                advantage=[1.0, -1.0, 1.0, -1.0],
            )
            run.log_samples(
                [f"{payload} again"] * 2,
                group="tokens",
                prompt=[payload] * 2,
                completion=[payload] * 2,
                tokens=[[payload, " and on"]] * 2,
                logprobs=[[-1.0, -2.0]] * 2,
                reward=[1.0, 0.0],
                **{f"rewards/{payload}": [1.0, 0.0], payload: [payload] * 2},
            )
            run.log_episode(
                **{"episode_id": payload, "return": 1.0, "length": 3, "terminated": True, "reason": payload}
            )
            with run.timer("collect"), run.timer(payload):
                pass
            said = {"rule": payload, "level": payload, "message": payload, "source": payload}
            run.record("alerts", {**said, "evidence": json.dumps({payload: payload})}, env_step=20)
            run.log_image(f"view/{payload}", np.zeros((4, 4, 3), dtype=np.uint8), env_step=20)
            run.save_checkpoint(write=lambda path: Path(path).write_bytes(b"state"), score=1.0, env_step=20)
            run.summary[payload] = payload
        spoil(Path(run.folder), payload)
    return folder, ids


def spoil(folder: Path, payload: str) -> None:
    """What no script says but whoever hands over a folder can: names, hosts, commands, packages, logs, files."""
    place = folder / "run.json"
    about = json.loads(place.read_text())
    about |= {"name": payload, "project": payload, "group": payload, "job_type": payload, "host": payload}
    about |= {"command": [payload], "git": {"branch": payload}, "packages": {payload: payload}, "python": payload}
    place.write_text(json.dumps(about))
    log = folder / "log" / "train" / "train_logger.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"[2026-01-01 00:00:00][INFO] {payload}\n{payload}\n")
    (folder / "ckpt").mkdir(exist_ok=True)
    (folder / "ckpt" / "<img src=x onerror=window.pwned=1>.svg").write_text("<svg onload='window.pwned=1'/>")


@pytest.mark.parametrize("place", PAGES)
def test_markup_out_of_a_run_is_shown_as_text_on_every_page(
    page: Any, serve: Any, hostile: tuple[Path, list[str]], place: str
) -> None:
    folder, ids = hostile
    dialogs: list[str] = []
    page.tab.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.open(
        serve(folder),
        "#/" + place.format(run=ids[0], other=ids[1], key="train/return", hostile_key=quote(f"a/{PAYLOADS[0]}")),
    )
    page.settled()
    assert page.tab.evaluate("window.pwned") is None
    assert dialogs == []
    assert page.tab.evaluate("document.querySelectorAll('img[src=x], svg[onload], main script').length") == 0
    assert [error for error in page.errors if "Content Security Policy" in error or "TypeError" in error] == []


def test_the_payloads_can_be_read_as_they_were_written(page: Any, serve: Any, hostile: tuple[Path, list[str]]) -> None:
    folder, ids = hostile
    page.open(serve(folder), f"#/run/{ids[0]}")
    page.tab.get_by_text(PAYLOADS[0], exact=False).first.wait_for()
    page.open(serve(folder), f"#/samples?run={ids[0]}")
    page.tab.get_by_text(PAYLOADS[0], exact=False).first.wait_for()
