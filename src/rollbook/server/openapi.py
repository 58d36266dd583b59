"""The registry of the API, one line per subject, and its description as an OpenAPI 3.1 document.

python -m rollbook.server.openapi > openapi.json        # the source of the TypeScript types
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from rollbook.server.answering import EDIT_HEADER
from rollbook.server.curves import findings, groups, series, sweeps, verdicts
from rollbook.server.frames import MEDIA_TYPE
from rollbook.server.runs import columns, labels, one_run, page_state, removing, table
from rollbook.server.shared import rows, sql
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import STATUS, ErrorBody
from rollbook.server.tables import (
    cause,
    episodes,
    fates,
    files,
    health,
    histograms,
    logs,
    rollouts,
    samples,
    timings,
)
from rollbook.system.version import __version__

ENDPOINTS = [
    *labels.ENDPOINTS,
    *page_state.ENDPOINTS,
    *table.ENDPOINTS,
    *columns.ENDPOINTS,
    *one_run.ENDPOINTS,
    *removing.ENDPOINTS,
    *rows.ENDPOINTS,
    *series.ENDPOINTS,
    *groups.ENDPOINTS,
    *verdicts.ENDPOINTS,
    *sweeps.ENDPOINTS,
    *findings.ENDPOINTS,
    *health.ENDPOINTS,
    *cause.ENDPOINTS,
    *episodes.ENDPOINTS,
    *samples.ENDPOINTS,
    *rollouts.ENDPOINTS,
    *fates.ENDPOINTS,
    *timings.ENDPOINTS,
    *logs.ENDPOINTS,
    *files.ENDPOINTS,
    *histograms.ENDPOINTS,
    *sql.ENDPOINTS,
]
"""All of the API; a subject is a line."""

_REFERENCE = "#/components/schemas/{name}"
_WORDS = {
    400: "What was asked cannot be understood.",
    401: "The token is needed.",
    403: "Not from there, or not without the edit token.",
    404: "There is no such thing.",
    413: "More than may be asked for at once.",
    422: "What lies on the disk cannot be read.",
    429: "Too many requests are waiting.",
    500: "The server failed.",
    504: "It took too long.",
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, object]:
    """The OpenAPI document of some endpoints.

    Args:
      endpoints: `rollbook.server.shared.endpoint.Endpoint` objects, such as `ENDPOINTS`.
    """
    endpoints = list(endpoints)
    shapes: list[object] = [ErrorBody]
    for endpoint in endpoints:
        shapes += [
            shape for shape in (endpoint.answer, endpoint.entries) if shape is not None and not isinstance(shape, str)
        ]
        if _has_body(endpoint):
            shapes.append(endpoint.ask)
        shapes += [entry.type for entry in _beside_body(endpoint)]
    schemas, components = msgspec.json.schema_components(_unique(shapes), ref_template=_REFERENCE)
    by_shape = {repr(shape): schema for shape, schema in zip(_unique(shapes), schemas, strict=True)}
    paths: dict[str, dict[str, object]] = {}
    for endpoint in endpoints:
        address = re.sub(r"\{(\w+):\w+\}", r"{\1}", endpoint.path)
        paths.setdefault(address, {})[endpoint.method.lower()] = _operation(endpoint, by_shape)
    for endpoint in endpoints:
        if _has_body(endpoint):
            _without(components[endpoint.ask.__name__], endpoint.path_names)
    for name, schema in components.items():
        _described(name, schema)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rollbook",
            "version": __version__,
            "description": "What the page of rollbook asks its server. Numbers that JSON cannot write are the texts "
            "NaN, Infinity and -Infinity. The page's own addresses are relative to the page.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Only on addresses other than loopback."}
            },
        },
    }


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, object]:
    operation: dict[str, Any] = {
        "operationId": _name(endpoint),
        "summary": endpoint.summary,
        "parameters": [],
        "responses": {"200": _answer(endpoint, schemas)},
    }
    in_path = set(endpoint.path_names)
    for entry in _beside_body(endpoint):
        operation["parameters"].append(
            {
                "name": entry.encode_name,
                "in": "path" if entry.encode_name in in_path else "query",
                "required": entry.encode_name in in_path or entry.required,
                "schema": schemas[repr(entry.type)],
            }
        )
    if endpoint.edits:
        operation["parameters"].append(
            {
                "name": EDIT_HEADER,
                "in": "header",
                "required": True,
                "schema": {"type": "string"},
                "description": "edit_token of GET /api/hello",
            }
        )
    if _has_body(endpoint):
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schemas[repr(endpoint.ask)]}},
        }
    for status in sorted({STATUS[code] for code in STATUS} & set(endpoint.errors)):
        operation["responses"][str(status)] = {
            "description": _WORDS[status],
            "content": {"application/json": {"schema": schemas[repr(ErrorBody)]}},
        }
    return operation


def _answer(endpoint: Endpoint, schemas: dict[str, object]) -> dict[str, object]:
    if not isinstance(endpoint.answer, str):
        return {
            "description": endpoint.summary,
            "content": {"application/json": {"schema": schemas[repr(endpoint.answer)]}},
        }
    media_type: dict[str, object] = {"schema": {"type": "string", "format": "binary"}}
    if endpoint.answer == MEDIA_TYPE and endpoint.entries is not None:
        media_type["x-entry"] = schemas[repr(endpoint.entries)]
    return {"description": endpoint.summary, "content": {endpoint.answer: media_type}}


def _beside_body(endpoint: Endpoint) -> list[msgspec.structs.FieldInfo]:
    """The fields that are in the address."""
    own = msgspec.structs.fields(endpoint.ask)
    return [entry for entry in own if not _has_body(endpoint) or entry.encode_name in endpoint.path_names]


def _has_body(endpoint: Endpoint) -> bool:
    return endpoint.method in ("POST", "PUT")


def _unique(shapes: list[object]) -> list[object]:
    return list({repr(shape): shape for shape in shapes}.values())


def _without(schema: dict[str, Any], names: list[str]) -> None:
    """Remove from the body what is in the address."""
    for name in names:
        schema.get("properties", {}).pop(name, None)
        if name in schema.get("required", ()):
            schema["required"].remove(name)


def _described(name: str, schema: dict[str, Any]) -> None:
    """Move the attributes that a docstring explains behind its head, as a description of the properties."""
    text = inspect.cleandoc(schema.get("description") or "")
    head, _, rest = text.partition("\nAttributes:")
    schema["description"] = head.strip()
    if rest:
        schema["description"] += "\n\n" + inspect.cleandoc(rest)


def _name(endpoint: Endpoint) -> str:
    words = [word for word in re.split(r"[^A-Za-z0-9]+", re.sub(r"\{(\w+)(:\w+)?\}", r"\1", endpoint.path)) if word]
    return "_".join([endpoint.method.lower(), *(words[1:] if words[0] == "api" else words)])


def main() -> None:
    """Print the document."""
    import sys

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document(ENDPOINTS)), indent=1) + b"\n")


if __name__ == "__main__":
    main()
