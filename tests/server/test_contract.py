"""What api/openapi.json says is what the server does: schemathesis asks everything that may be asked.

Left out where schemathesis is not installed, so in `make pytest`: `make test-page` installs it and runs this file,
and `.ci/run` runs that.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from page_server import record_rich
from rollbook.server.app import make_app
from rollbook.server.openapi import ENDPOINTS
from rollbook.server.settings import ServerSettings

EDIT_TOKEN = "known"
OPERATIONS = [(endpoint.method, re.sub(r"\{(\w+):\w+\}", r"{\1}", endpoint.path)) for endpoint in ENDPOINTS]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The API of a server with one rich run, which may be spoiled; and the name of that run.

    schemathesis takes seconds to import, which each worker would spend if the module did.
    """
    schemathesis = pytest.importorskip("schemathesis", reason="make test-page installs it, and runs this file")
    folder: Path = tmp_path_factory.mktemp("contract") / "runs"
    identity = record_rich(folder)
    names = frozenset({"testserver", "localhost"})
    app = make_app(ServerSettings((str(folder),), edit_token=EDIT_TOKEN, hosts=names))
    return schemathesis.openapi.from_asgi("/api/openapi.json", app), identity


@pytest.mark.hypothesis
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_answer_is_as_described(described: Any, method: str, path: str) -> None:
    schema, identity = described
    from schemathesis import checks

    wanted = [
        checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]

    @settings(
        max_examples=max(5, settings().max_examples // 3),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(case=schema[path][method].as_strategy())
    def ask(case: Any) -> None:
        if case.path_parameters and "run" in case.path_parameters and len(str(case.path_parameters["run"])) % 4:
            case.path_parameters["run"] = identity
        if isinstance(case.body, dict) and isinstance(case.body.get("runs"), list):
            case.body["runs"] = [identity, *case.body["runs"]][: 1 + len(case.body["runs"]) % 2]
        case.call_and_validate(checks=wanted, headers={"x-rollbook-edit": EDIT_TOKEN})

    ask()
