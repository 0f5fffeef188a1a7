"""From a checked request to its answer: limits, the items that fail alone, the queue, the deadline and the clocks."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from heedful.errors import HeedfulError
from heedful.serving.batcher import Batcher, Closed, Full, Late
from heedful.serving.catalogue import Catalogue, Served
from heedful.serving.fair_queue import Job
from heedful.serving.metrics import Metrics
from heedful.serving.refusals import Refusal, of_error
from heedful.serving.settings import ServeSettings
from heedful.serving.verbs.verb import Asked, Verb, Work

# Inputs with more characters than this together are tokenized in a thread, so that others are answered meanwhile.
SHORT = 4000


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


@dataclass(frozen=True)
class Caller:
    """Who asks: a name for taking turns, and something that ends when the client goes away."""

    name: str = "here"
    gone: Callable[[], Awaitable[None]] | None = None


@dataclass
class Clocks:
    """The seconds of the stages of a request."""

    queue: float = 0.0
    tokenize: float = 0.0
    compute: float = 0.0
    start: float = field(default_factory=time.monotonic)

    @property
    def told(self) -> dict[str, float]:
        """In milliseconds, with all that has passed until now."""
        seconds = {"queue_ms": self.queue, "tokenize_ms": self.tokenize, "compute_ms": self.compute}
        seconds["total_ms"] = time.monotonic() - self.start
        return {name: round(1000 * value, 3) for name, value in seconds.items()}


@dataclass(frozen=True)
class Answer:
    """What a request gets: a result for each input, or what was made of them, and what went wrong alone."""

    results: Any
    truncated: Sequence[int]
    failed: int
    clocks: Clocks
    tokens: int


class Service:
    """Everything but the wire."""

    def __init__(self, catalogue: Catalogue, batcher: Batcher, settings: ServeSettings, metrics: Metrics) -> None:
        self.catalogue, self.batcher, self.settings, self.metrics = catalogue, batcher, settings, metrics
        self.draining = False

    async def answer(
        self,
        served: Served,
        verb: Verb[Any],
        asked: Asked,
        caller: Caller,
        shape: Callable[[list[Any]], Any] = lambda results: results,
        whole: bool = False,
    ) -> Answer:
        """Answer a request; `shape` makes what is sent of all results, in the thread that has computed them.

        For a request that is answered as a `whole` or not at all, the first input that is bad refuses it.
        """
        self.check_open()
        clocks = Clocks()
        inputs: Sequence[Any] = asked.inputs  # type: ignore[attr-defined]
        self._check_count(inputs)
        if sum(len(text) for one in inputs for text in texts_of(one)) > SHORT:
            read = await asyncio.to_thread(self._read, verb, asked, inputs)
        else:
            read = self._read(verb, asked, inputs)
        work, fit, errors = read
        if whole and errors:
            raise next(iter(errors.values()))
        clocks.tokenize = time.monotonic() - clocks.start
        shaped = self._timed(_shaper(work, fit, errors, len(inputs), shape))
        results = shaped([]) if not work.units else await self._computed(work, shaped, asked, caller, clocks)
        self.metrics.stages["tokenize"].observe(clocks.tokenize)
        self.metrics.inputs.labels(served.name, verb.name).inc(len(fit))
        truncated = [fit[number] for number in work.truncated]
        return Answer(results, truncated, len(errors), clocks, sum(work.sizes))

    def check_open(self) -> None:
        """Refuse whoever comes while the server is about to stop."""
        if self.draining:
            raise Refusal(503, "draining", "the server is about to stop", retry_after=1)

    def seconds_for(self, asked: Asked) -> float:
        """How long an answer may take: the server's limit, or the request's own where that is shorter."""
        return min(self.settings.timeout, (asked.timeout_ms or math.inf) / 1000)

    def too_late(self, asked: Asked) -> Refusal:
        """The refusal of what took longer than it may: than the request itself has said, or than the server allows."""
        seconds = self.seconds_for(asked)
        what = f"the answer was not ready within {seconds:g} seconds"
        own = seconds < self.settings.timeout
        return Refusal(408 if own else 504, "too_late", what, remedy="allow more time, or send less")

    def submit(self, job: Job) -> Job:
        """Queue a job, or tell when to come again."""
        try:
            return self.batcher.submit(job)
        except Full as full:
            retry = max(1, math.ceil(full.seconds))
            what = f"there is too much to do: about {full.seconds:.1f} seconds of work wait already"
            raise Refusal(429, "busy", what, remedy="come again later", retry_after=retry) from None
        except Closed:
            raise Refusal(503, "draining", "the server is about to stop", retry_after=1) from None

    def observe(self, clocks: Clocks, job: Job) -> None:
        """Take the clocks of a job that is done, and count them."""
        clocks.queue, clocks.compute = max(0.0, job.started - job.queued), job.computed
        self.metrics.stages["queue"].observe(clocks.queue)
        self.metrics.stages["compute"].observe(clocks.compute)

    def _timed(self, shaped: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        def timed(results: list[Any]) -> Any:
            with self.metrics.stages["answer"].time():
                return shaped(results)

        return timed

    def _check_count(self, inputs: Sequence[Any]) -> None:
        most = self.settings.max_inputs
        if len(inputs) > most:
            what = f"{len(inputs):,} inputs are more than the {most:,} of a request"
            raise Refusal(413, "too_many_inputs", what, field="inputs", remedy="send them in several requests")

    def _read(self, verb: Verb[Any], asked: Asked, inputs: Sequence[Any]) -> tuple[Work, list[int], dict[int, Refusal]]:
        """The work for all inputs that are fit, their numbers, and what is wrong with the others."""
        fit: list[int] = []
        read: list[Any] = []
        errors: dict[int, Refusal] = {}
        for number, given in enumerate(inputs):
            try:
                self.check_texts(given, number)
                read.append(verb.read(asked, given))
                fit.append(number)
            except HeedfulError as error:
                errors[number] = of_error(error, f"inputs.{number}")
            except Refusal as refusal:
                errors[number] = refusal
        if not fit:
            raise errors[0]
        try:
            work = verb.work(asked, read)
        except HeedfulError as error:
            raise of_error(error) from error
        self.check_tokens(work)
        return work, fit, errors

    def check_texts(self, given: Any, number: int) -> None:
        """Refuse an input with a text that is too long or holds what no text does."""
        place, most = f"inputs.{number}", self.settings.max_characters
        for text in texts_of(given):
            if len(text) > most:
                what = f"a text of {len(text):,} characters is longer than the limit of {most:,}"
                raise Refusal(413, "text_too_long", what, field=place, remedy="send a part of it")
            if "\0" in text:
                remedy = "take it out: it is mostly a sign of a damaged text"
                raise Refusal(422, "nul", "the text holds a NUL character", field=place, remedy=remedy)

    def check_tokens(self, work: Work) -> None:
        """Refuse work that comes to too many tokens."""
        tokens, most = sum(work.sizes), self.settings.max_tokens
        if tokens > most:
            what = f"the request comes to {tokens:,} tokens, more than the limit of {most:,}"
            raise Refusal(413, "too_many_tokens", what, field="inputs", remedy="send it in several requests")

    async def _computed(
        self, work: Work, finish: Callable[[list[Any]], Any], asked: Asked, caller: Caller, clocks: Clocks
    ) -> Any:
        assert work.program is not None
        seconds = self.seconds_for(asked)
        deadline = clocks.start + seconds
        job = self.submit(Job(caller.name, work.program, work.units, work.sizes, deadline, finish))
        try:
            results = await self._settled(job, caller, deadline)
        except HeedfulError as error:
            raise of_error(error) from error
        except (Late, TimeoutError, asyncio.TimeoutError):
            raise self.too_late(asked) from None
        self.observe(clocks, job)
        return results

    async def _settled(self, job: Job, caller: Caller, deadline: float) -> Any:
        """The results of a job; it is taken out of the queue when its client goes or its time is over."""
        future = asyncio.wrap_future(job.future)
        watch = None if caller.gone is None else asyncio.ensure_future(caller.gone())
        waiting: set[asyncio.Future[Any]] = {future} if watch is None else {future, watch}
        try:
            await asyncio.wait(
                waiting, timeout=max(0.0, deadline - time.monotonic()), return_when=asyncio.FIRST_COMPLETED
            )
            if future.done():
                return future.result()
            if watch is not None and watch.done():
                self.metrics.cancelled.inc()
                raise ClientGone
            raise TimeoutError
        finally:
            if watch is not None:
                watch.cancel()
            if not future.done():
                self.batcher.cancel(job)
                future.cancel()


def texts_of(given: Any) -> Iterator[str]:
    """All texts in an input."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict):
        for key, value in given.items():
            yield key
            yield from texts_of(value)
    elif isinstance(given, list | tuple):
        for one in given:
            yield from texts_of(one)


def _shaper(
    work: Work, fit: Sequence[int], errors: dict[int, Refusal], count: int, shape: Callable[[list[Any]], Any]
) -> Callable[[list[Any]], Any]:
    """What makes an answer of the results of all units: errors stand at the places of their inputs."""

    def shaped(results: list[Any]) -> Any:
        answers = work.finish(results)
        if not errors:
            return shape(answers)
        found: list[Any] = [None] * count
        for number, one in zip(fit, answers, strict=True):
            found[number] = one
        for number, refusal in errors.items():
            found[number] = {"error": refusal.told}
        return shape(found)

    return shaped
