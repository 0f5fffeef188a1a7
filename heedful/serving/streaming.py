"""A text as server-sent events while it is written: `data: {"text": …}` for each piece, at last `event: end`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
from starlette.responses import StreamingResponse

from heedful.errors import HeedfulError
from heedful.serving.batcher import Closed, Full
from heedful.serving.fair_queue import Job
from heedful.serving.refusals import Refusal, of_error
from heedful.serving.service import Caller, Service
from heedful.serving.verbs.generate import Generate, GenerateAsked

HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def stream(service: Service, verb: Generate, asked: GenerateAsked, caller: Caller) -> StreamingResponse:
    """The response; what can be refused is refused before its first byte."""
    loop, pieces = asyncio.get_running_loop(), asyncio.Queue[str | None]()
    if service.draining:
        raise Refusal(503, "draining", "the server is about to stop", retry_after=1)

    def tell(piece: str | None) -> None:
        loop.call_soon_threadsafe(pieces.put_nowait, piece)

    try:
        program, work = verb.streamed(asked, tell)
        job = service.batcher.submit(Job(caller.name, program, work.units, work.sizes))
    except HeedfulError as error:
        raise of_error(error) from error
    except Full as full:
        raise Refusal(429, "busy", "there is too much to do", retry_after=max(1, round(full.seconds))) from None
    except Closed:
        raise Refusal(503, "draining", "the server is about to stop", retry_after=1) from None
    job.future.add_done_callback(lambda future: tell(None))

    async def events() -> AsyncIterator[bytes]:
        try:
            while (piece := await asyncio.wait_for(pieces.get(), service.settings.timeout)) is not None:
                yield _event({"text": piece})
            yield _event(_end(job), "end")
        finally:  # also when the client has gone: the thread stops at its next piece
            program.over.set()
            service.batcher.cancel(job)

    return StreamingResponse(events(), headers=HEADERS, media_type="text/event-stream")


def _end(job: Job) -> dict[str, Any]:
    error = job.future.exception()
    if error is None:
        return {"reason": job.future.result()[0], "compute_ms": round(1000 * job.computed, 3)}
    told = of_error(error) if isinstance(error, HeedfulError) else Refusal(500, "internal", "something went wrong here")
    return {"error": told.told}


def _event(value: dict[str, Any], name: str | None = None) -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: " + orjson.dumps(value) + b"\n\n"
