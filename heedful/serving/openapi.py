"""The description of all routes, as OpenAPI for programs and as a page for people."""

from __future__ import annotations

import html
import json
from importlib import metadata
from typing import Any

from heedful.serving.catalogue import Catalogue
from heedful.serving.verbs.predict import ABOUT
from heedful.serving.verbs.verb import Verb

REFUSALS = {
    400: "The body is not JSON, or the request not HTTP.",
    401: "The key is missing or wrong.",
    404: "There is no such model, or it has no such verb.",
    408: "The request did not come in time, or its own `timeout_ms` was over before the answer was ready.",
    413: "The body, a text, or the whole is too large.",
    415: "The body is compressed, or not declared as JSON.",
    422: "A field is wrong; `field` and `message` say which and why.",
    429: "There is too much to do; `Retry-After` says when to come again.",
    431: "The head is too large.",
    500: "Something went wrong in the server.",
    503: "The server starts or stops.",
    504: "The answer was not ready in time.",
}
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["status", "code", "message"],
            "properties": {
                "status": {"type": "integer"},
                "code": {"type": "string"},
                "message": {"type": "string"},
                "field": {"type": "string"},
                "remedy": {"type": "string"},
            },
        }
    },
}
ANSWER = {
    "type": "object",
    "required": ["model", "verb", "results"],
    "properties": {
        "model": {"type": "string"},
        "verb": {"type": "string"},
        "results": {
            "type": "array",
            "description": 'One for each input, in order; an input that failed alone has {"error": …}.',
        },
        "truncated": {"type": "array", "items": {"type": "integer"}, "description": "Inputs that were cut."},
        "failed": {"type": "integer", "description": "How many inputs failed alone."},
        "timing": {"type": "object", "additionalProperties": {"type": "number"}},
    },
}

ANYTHING = {"application/json": {"schema": {"type": "object"}}}
# What others have described; here it is only named.
OTHERS = {
    "/metrics": "The numbers for Prometheus.",
    "/v1/embeddings, /v1/models": "As OpenAI's clients ask.",
    "/embed, /embed_all, /predict, /rerank, /similarity, /tokenize, /": "As clients of text-embeddings-inference ask.",
    "/encode": "As clients of bert-as-service ask over HTTP.",
}


def openapi(catalogue: Catalogue) -> dict[str, Any]:
    """The description of the routes for the models of a server."""
    schemas: dict[str, Any] = {"Error": ERROR, "Answer": ANSWER}
    paths: dict[str, Any] = {}
    for path, summary in (("/health", "Whether it can compute."), ("/ready", "Whether it takes requests.")):
        paths[path] = {"get": {"summary": summary, "security": [], "responses": _responses(ANYTHING, [503])}}
    paths["/info"] = {"get": {"summary": "Models, verbs, limits.", "responses": _responses(ANYTHING, [401, 503])}}
    for served in catalogue.models.values():
        for name, verb in served.verbs.items():
            schemas[verb.asked.__name__] = _schema(verb)
            operation = _operation(f"{served.name}.{name}", ABOUT.get(name, verb.about), verb)
            paths[f"/v1/models/{served.name}/{name}"] = {"post": operation}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "heedful",
            "version": metadata.version("heedful"),
            "description": "Every verb of every model, in one shape.",
        },
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"key": []}],
    }


def _schema(verb: Verb[Any]) -> dict[str, Any]:
    return verb.asked.model_json_schema()


def _operation(name: str, summary: str, verb: Verb[Any]) -> dict[str, Any]:
    body = {"schema": {"$ref": f"#/components/schemas/{verb.asked.__name__}"}}
    answer = {"application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}}
    if "stream" in verb.asked.model_fields:
        answer["text/event-stream"] = {"schema": {"type": "string"}}
    return {
        "operationId": name,
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": _responses(answer, list(REFUSALS)),
    }


def _responses(answer: dict[str, Any], refusals: list[int]) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    found = {"200": {"description": "The answer.", "content": answer}}
    return {**found, **{str(status): {"description": REFUSALS[status], "content": error} for status in refusals}}


def docs_page(catalogue: Catalogue) -> str:
    """The routes as a page without script."""
    described = openapi(catalogue)
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<title>heedful: routes</title><link rel=stylesheet href='/page/style.css'><main class=docs><h1>Routes</h1>"
        "<p>Our own routes for programs: <a href='/openapi.json'>openapi.json</a>. Every answer of a verb has "
        "<code>results</code>, one for each of its <code>inputs</code>.</p>"
    ]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            parts.append(f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>")
            parts.append(f"<p>{html.escape(operation['summary'])}</p>")
            if "requestBody" in operation:
                name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                parts.append(_fields(described["components"]["schemas"][name]))
    parts.append("<h2>Formats of others, and of machines</h2><table>")
    parts += [f"<tr><th scope=row><code>{path}</code></th><td>{about}</td></tr>" for path, about in OTHERS.items()]
    return "".join([*parts, "</table></main></html>"])


def _fields(schema: dict[str, Any]) -> str:
    rows = []
    for name, known in schema["properties"].items():
        default = f" <small>= {html.escape(json.dumps(known['default']))}</small>" if "default" in known else ""
        about = html.escape(known.get("description", ""))
        rows.append(f"<tr><th scope=row><code>{name}</code>{default}</th><td>{about}</td></tr>")
    return f"<table>{''.join(rows)}</table>"
