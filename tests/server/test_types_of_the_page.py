"""The types that the page is written with are those of the server's OpenAPI description."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rollbook.server.openapi import ENDPOINTS, document
from waiting import PATIENCE

GENERATOR = Path(__file__).parents[2] / "dashboard" / "generate" / "api.mjs"


def checked(description: dict[str, object]) -> subprocess.CompletedProcess[str]:
    """What the generator says of schema.ts, asked by this description."""
    if (node := shutil.which("node")) is None:
        pytest.skip("needs Node")
    return subprocess.run(
        [node, str(GENERATOR), "--check"],
        input=json.dumps(description),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


def test_the_types_of_the_page_are_those_of_the_server() -> None:
    answer = checked(document(ENDPOINTS))
    assert answer.returncode == 0, answer.stderr.replace("python -m rollbook.server.openapi | npm run api", "make api")


def test_a_type_that_the_page_does_not_know_yet_is_found() -> None:
    changed: Any = document(ENDPOINTS)
    changed["components"]["schemas"]["Newcomer"] = {"type": "object", "properties": {"score": {"type": "number"}}}
    answer = checked(changed)
    assert answer.returncode == 1
    assert "schema.ts" in answer.stderr
