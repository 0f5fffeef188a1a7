"""The routes: our own under /v1, what a machine asks (health, metrics, info), and the page."""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Awaitable, Callable, Sequence
from importlib import metadata
from typing import Any

import numpy as np
import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from heedful.serving.openapi import docs_page, openapi
from heedful.serving.reading import caller_of, check_key, drop_body, parsed, read_body
from heedful.serving.refusals import Refusal
from heedful.serving.service import Answer, ClientGone, Service
from heedful.serving.streaming import stream
from heedful.serving.verbs.generate import Generate, GenerateAsked
from heedful.serving.verbs.verb import Asked

logger = logging.getLogger("heedful.serving")
JSON_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
# What a client that has gone would have got; nobody reads it.
CLIENT_CLOSED = 499

Handler = Callable[[Request], Awaitable[Response]]


class App:
    """The handlers of all routes over one service."""

    def __init__(self, service: Service, key: bytes | None = None) -> None:
        self.service, self.key = service, key

    async def health(self, request: Request) -> Response:
        """Whether the process can compute."""
        if not self.service.batcher.alive and not self.service.draining:
            raise Refusal(503, "dead", "no compute thread is alive")
        return as_json({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether requests are taken."""
        if self.service.draining:
            raise Refusal(503, "draining", "the server is about to stop", retry_after=1)
        return as_json({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        """The numbers for Prometheus."""
        return Response(self.service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def info(self, request: Request) -> Response:
        """Models, verbs, limits and versions."""
        return as_json(info(self.service))

    async def openapi(self, request: Request) -> Response:
        """The description of all routes."""
        return as_json(openapi(self.service.catalogue))

    async def docs(self, request: Request) -> Response:
        """The same for people."""
        return Response(docs_page(self.service.catalogue), media_type="text/html; charset=utf-8")

    async def answer(self, request: Request) -> Response:
        """A verb of a model."""
        served = self.service.catalogue.model(request.path_params["name"])
        verb = served.verb(request.path_params["verb"])
        asked: Asked = parsed(verb.asked, await read_body(request, self.service.settings.max_body))
        if isinstance(verb, Generate) and isinstance(asked, GenerateAsked) and asked.stream:
            return stream(self.service, served, verb, asked, caller_of(request))
        answer = await self.service.answer(served, verb, asked, caller_of(request), fragment)
        return as_json({"model": served.name, "verb": request.path_params["verb"], **told(answer, asked)})

    def guarded(self, handler: Handler, open_to_all: bool = False) -> Handler:
        """A handler with the key checked, its refusals told, and its answer counted."""

        async def run(request: Request) -> Response:
            try:
                if not open_to_all:
                    check_key(request, self.key)
                response = await handler(request)
            except Refusal as refusal:
                await drop_body(request)
                response = as_json({"error": refusal.told}, refusal.status, refusal.headers)
            except ClientGone:
                response = Response(status_code=CLIENT_CLOSED)
            except asyncio.CancelledError:  # the time of the drain is over
                if not self.service.draining:
                    raise
                told = Refusal(503, "draining", "the server has stopped before the answer was ready").told
                response = as_json({"error": told}, 503)
            except Exception as error:
                logger.error("a request could not be answered", exc_info=error)
                told = Refusal(500, "internal", "something went wrong here; the server's log has more").told
                response = as_json({"error": told}, 500)
            if self.service.draining:
                response.headers["connection"] = "close"
            self._count(request, response.status_code)
            return response

        return run

    def _count(self, request: Request, status: int) -> None:
        """Names that a client has made up are counted as none, so that there are never many."""
        name, verb = request.path_params.get("name", ""), request.path_params.get("verb", "")
        served = self.service.catalogue.models.get(name)
        known = served is not None and verb in served.verbs
        self.service.metrics.requests.labels(name if served else "", verb if known else "", str(status)).inc()


def told(answer: Answer, asked: Asked) -> dict[str, Any]:
    """An answer as JSON; what is not worth telling is left out."""
    found: dict[str, Any] = {"results": answer.results}
    if answer.truncated:
        found["truncated"] = answer.truncated
    if answer.failed:
        found["failed"] = answer.failed
    if asked.timing:
        found["timing"] = answer.clocks.told
    return found


def fragment(results: list[Any]) -> orjson.Fragment:
    """Results written as JSON, in the thread that has computed them."""
    return orjson.Fragment(_dumped(results))


def as_json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON response."""
    return Response(_dumped(value), status, headers, "application/json")


def _dumped(value: Any) -> bytes:
    """As JSON; an array that is not laid out row by row, which orjson does not take, is copied."""
    return orjson.dumps(value, np.ascontiguousarray, JSON_OPTIONS)


def info(service: Service) -> dict[str, Any]:
    """What a server is, as far as a client should know."""
    settings = service.settings
    limits = ("max_body", "max_inputs", "max_characters", "max_tokens", "max_wait", "timeout", "batch_tokens")
    first = next(iter(service.catalogue.models.values()))
    return {
        # What clients of text-embeddings-inference look for.
        "model_id": first.name,
        "model_dtype": "float32",
        "max_input_length": first.facts["max_length"],
        "max_batch_tokens": settings.batch_tokens,
        "max_client_batch_size": settings.max_inputs,
        "auto_truncate": True,
        "version": metadata.version("heedful"),
        "models": [
            {"name": one.name, "verbs": list(one.verbs), **one.facts} for one in service.catalogue.models.values()
        ],
        "limits": {name: getattr(settings, name) for name in limits},
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("heedful", "torch", "tokenizers")},
        },
    }


def build_app(app: App, more: Sequence[Route] = ()) -> Starlette:
    """The application; `more` are routes of other wire formats."""
    routes = [  # they are tried in this order
        Route("/v1/models/{name}/{verb}", app.guarded(app.answer), methods=["POST"]),
        Route("/health", app.guarded(app.health, open_to_all=True)),
        Route("/ready", app.guarded(app.ready, open_to_all=True)),
        Route("/metrics", app.guarded(app.metrics)),
        Route("/info", app.guarded(app.info)),
        Route("/openapi.json", app.guarded(app.openapi, open_to_all=True)),
        Route("/docs", app.guarded(app.docs, open_to_all=True)),
        *more,
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _plain})


def _plain(request: Request, error: Exception) -> Response:
    """What the router itself refuses, in the same shape as everything else."""
    assert isinstance(error, HTTPException)
    codes = {
        404: ("no_such_route", "there is nothing here", "see /docs"),
        405: ("wrong_method", "not by this method", ""),
    }
    code, message, remedy = codes.get(error.status_code, ("refused", error.detail, ""))
    refusal = Refusal(error.status_code, code, message, remedy=remedy or None)
    return as_json({"error": refusal.told}, error.status_code, dict(error.headers or {}))
