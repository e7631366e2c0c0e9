"""The description of the local interface, OpenAPI 3.1, made of the same table that answers it."""

import re
from typing import Any, Final

from syndic.console.endpoints import BASE, COORDINATOR, PARTY, Endpoint, Media
from syndic.console.views import Fault, Role
from syndic.document import schema_parts
from syndic.version import __version__

_FAULTS: Final = {
    "400": "the request cannot be used as it stands",
    "401": "the secret is missing or wrong",
    "403": "a form's token is missing, or another site asked",
    "404": "there is no such thing here",
    "409": "refused: the state of the folder does not allow it",
    "413": "too large",
    "415": "another kind of body is expected",
}
_PATTERNS: Final = {"run": "^[0-9a-f]{16,64}$", "other": "^[0-9A-Za-z_-]{1,80}$", "name": "^[0-9A-Za-z_-]{1,80}$"}


def endpoints_of(role: Role) -> tuple[Endpoint, ...]:
    """Return what a console of this kind answers."""
    return PARTY if role == "party" else COORDINATOR


def description(role: Role) -> dict[str, Any]:
    """Return the OpenAPI document of a console of this kind."""
    endpoints = endpoints_of(role)
    kinds = [kind for one in endpoints for kind in (one.answer, one.body) if kind is not None and not _file(kind)]
    schemas, components = schema_parts([*kinds, Fault], "#/components/schemas/{name}")
    known = dict(zip(map(str, [*kinds, Fault]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(BASE + one.path, {})[one.method.lower()] = _operation(one, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Syndic console of a {role}",
            "version": __version__,
            "description": "Local, for programs of the same person. Send the console's secret as a bearer token.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"secret": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"secret": []}],
    }


def _operation(one: Endpoint, known: dict[str, Any]) -> dict[str, Any]:
    fault = {"application/json": {"schema": known[str(Fault)]}}
    answer = {one.answer.kind: {"schema": {}}} if _file(one.answer) else {
        "application/json": {"schema": known[str(one.answer)]}
    }  # fmt: skip
    told: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "responses": {
            str(one.status): {"description": one.summary, "content": answer},
            **{code: {"description": words, "content": fault} for code, words in _FAULTS.items()},
        },
    }
    names = re.findall(r"{(\w+)}", one.path)
    if names:
        told["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1, "pattern": _PATTERNS.get(name, "^[0-9A-Za-z_.-]{1,80}$")},
            }
            for name in names
        ]
    if one.body is not None:
        content = {one.body.kind: {"schema": {}}} if _file(one.body) else {
            "application/json": {"schema": known[str(one.body)]}
        }  # fmt: skip
        told["requestBody"] = {"required": True, "content": content}
    return told


def _file(kind: Any) -> bool:
    return isinstance(kind, Media)
