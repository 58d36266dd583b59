"""What a copy of the page answers: its own program (`dashboard/src/state/copy.ts`) in Node, over its files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "dashboard"
BUNDLER = DASHBOARD / "node_modules" / "rolldown" / "bin" / "cli.mjs"

_PROGRAM = """
import { readFile } from "node:fs/promises";
const [, , bundle, folder, questions] = process.argv;
globalThis.fetch = (path) => readFile(`${folder}/${path.split("/").map(decodeURIComponent).join("/")}`).then(
  (content) => new Response(content), () => new Response("", { status: 404 }));
const { Copy } = await import(bundle);
const copy = new Copy();
const answers = [];
for (const [method, ...given] of JSON.parse(await readFile(questions, "utf8"))) {
  try { answers.push({ answer: await copy[method](...given) }); }
  catch (error) {
    if (error.code !== "static") throw error;
    answers.push({ refused: error.message, hint: error.hint });
  }
}
process.stdout.write(JSON.stringify(answers));
"""


def answers_of_copy(folder: Path, place: Path, questions: Sequence[Sequence[object]]) -> list[dict[str, Any]]:
    """For each question, [method of the page's `Source`, *arguments], {answer}, or {refused, hint}.

    Args:
      folder: of the copy; place: an empty folder for the program.
    """
    sys.path.append(str(ROOT / "scripts"))
    from build_page import NoNode, node

    try:
        program = node() / "node"
    except NoNode as err:
        pytest.skip(str(err))
    if not BUNDLER.is_file():
        pytest.skip("npm ci has not been run in dashboard/")
    bundle = place / "copy.mjs"
    source = DASHBOARD / "src" / "state" / "copy.ts"
    subprocess.run([program, BUNDLER, source, "--format", "esm", "--file", bundle], check=True, capture_output=True)
    (place / "ask.mjs").write_text(_PROGRAM)
    (place / "questions.json").write_text(json.dumps(questions))
    words = [program, place / "ask.mjs", bundle, folder, place / "questions.json"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers
