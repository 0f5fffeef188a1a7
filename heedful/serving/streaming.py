"""A text as server-sent events while it is written: `data: {"text": …}` for each piece, at last `event: end`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from typing import Any

import orjson
from starlette.responses import StreamingResponse

from heedful.errors import HeedfulError
from heedful.serving.batcher import Late
from heedful.serving.catalogue import Served
from heedful.serving.fair_queue import Job
from heedful.serving.refusals import Refusal, of_error
from heedful.serving.service import Caller, Clocks, Service
from heedful.serving.verbs.generate import Generate, GenerateAsked, StreamProgram

HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def stream(service: Service, served: Served, verb: Generate, asked: GenerateAsked, caller: Caller) -> StreamingResponse:
    """The response; what can be refused is refused before its first byte."""
    service.check_open()
    writing = _Writing(service, asked)
    writing.begin(verb, caller)
    service.metrics.inputs.labels(served.name, verb.name).inc()
    return StreamingResponse(writing.events(), headers=HEADERS, media_type="text/event-stream")


class _Writing:
    """One text from the thread that writes it to the client that reads it."""

    program: StreamProgram
    job: Job

    def __init__(self, service: Service, asked: GenerateAsked) -> None:
        self.service, self.asked, self.clocks = service, asked, Clocks()
        self.until = self.clocks.start + service.seconds_for(asked)
        self.loop, self.pieces = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def begin(self, verb: Generate, caller: Caller) -> None:
        """Check the request by the limits of all requests, and queue it."""
        try:
            for number, given in enumerate(self.asked.inputs):
                self.service.check_texts(given, number)
            self.program, work = verb.streamed(self.asked, self._tell)
        except HeedfulError as error:
            raise of_error(error) from error
        self.service.check_tokens(work)
        self.clocks.tokenize = time.monotonic() - self.clocks.start
        self.service.metrics.stages["tokenize"].observe(self.clocks.tokenize)
        self.job = self.service.submit(Job(caller.name, self.program, work.units, work.sizes, self.until))
        self.job.future.add_done_callback(lambda future: self._tell(None))

    def _tell(self, piece: str | None) -> None:
        self.loop.call_soon_threadsafe(self.pieces.put_nowait, piece)

    async def events(self) -> AsyncIterator[bytes]:
        """The pieces as they come, and how it ended; the time is for the whole text."""
        try:
            while (piece := await self._next()) is not None:
                yield _event({"text": piece})
            yield _event(self._end(), "end")
        except asyncio.TimeoutError:
            yield _event({"error": self.service.too_late(self.asked).told}, "end")
        finally:  # also when the client has gone: the thread stops at its next piece
            self.program.over.set()
            self.service.batcher.cancel(self.job)

    async def _next(self) -> str | None:
        return await asyncio.wait_for(self.pieces.get(), max(0.0, self.until - time.monotonic()))

    def _end(self) -> dict[str, Any]:
        try:
            (reason,) = self.job.future.result()
        except HeedfulError as error:
            return {"error": of_error(error).told}
        except Late:
            return {"error": self.service.too_late(self.asked).told}
        except (Exception, CancelledError):
            return {"error": Refusal(500, "internal", "something went wrong here").told}
        self.service.observe(self.clocks, self.job)
        return {"reason": reason, **({"timing": self.clocks.told} if self.asked.timing else {})}


def _event(value: dict[str, Any], name: str | None = None) -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: " + orjson.dumps(value) + b"\n\n"
