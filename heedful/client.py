"""A client of `heedful serve` with the methods of a loaded model; importing it loads neither torch nor the server.

    from heedful.client import Client
    with Client("http://127.0.0.1:8000") as model:        # Client(url, model="mini", api_key="…")
        vectors = model.embed(["one text", "another"])

Many inputs are sent in several requests and come back in order. Connections are kept. A server that is busy or not
ready yet is asked again when it says so, until the total deadline is over. `AsyncClient` has the same methods to be
awaited; `Client` awaits them on a loop in a thread of its own, where a deadline can end whatever is going on.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.errors import HeedfulError

if TYPE_CHECKING:
    import httpx2

AT_ONCE = 256  # inputs of a request
AGAIN = (429, 503)  # statuses that a later try may change
LONGEST_PAUSE = 5.0  # seconds, where the server does not say how long
KEPT = 256  # connections that are kept for the next request


class ServerError(HeedfulError):
    """The server has refused a request; `status`, `code` and `field` are its own words."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        where = error.get("field")
        super().__init__(str(error.get("message", f"status {status}")), where=where, remedy=error.get("remedy"))
        self.status, self.code, self.field = status, error.get("code"), where


@dataclass(frozen=True)
class _Call:
    """A request, and until when it must be answered."""

    verb: str
    body: Mapping[str, Any]
    until: float

    @property
    def left(self) -> float:
        return max(0.001, self.until - time.monotonic())

    def pause(self, attempt: int, retry_after: str | None) -> float | None:
        """Seconds until the next try; None if there is no time left for one."""
        told = float(retry_after) if retry_after and retry_after.isdecimal() else None
        pause = told if told is not None else min(LONGEST_PAUSE, 0.1 * 2**attempt) * random.uniform(0.5, 1.0)
        return pause if time.monotonic() + pause < self.until else None


class _Verbs:
    """The methods of both clients: what each of them asks, and what becomes of the results."""

    def __init__(
        self,
        url: str,
        model: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        at_once: int = AT_ONCE,
        retry: bool = True,
    ) -> None:
        """`model` may be left out where there is one only; `timeout` is for a whole call with its retries."""
        if timeout <= 0 or at_once < 1:
            raise HeedfulError("timeout and at_once must be above 0", remedy="leave them out")
        if not url.startswith(("http://", "https://")):
            raise HeedfulError("this is no address of a server", where=url, remedy=f"write http://{url}")
        self.url, self.model, self.timeout = url.rstrip("/"), model, timeout
        self.at_once, self.retry = at_once, retry
        self.headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = self._connections()

    def info(self) -> Any:
        """Models, verbs, limits and versions of the server."""
        return self._answer(self._info())

    def embed(self, texts: Sequence[str], unit: str = "sentence", **options: Any) -> Any:
        """Vectors (texts, width); of words or tokens a list of arrays.

        Options: layers, combine, pooling, normalize, max_length, prompt.
        """
        return self._answer(self._asked("embed", texts, lambda found: _vectors(found, unit), unit=unit, **options))

    def similarity(self, texts: Sequence[str], **options: Any) -> Any:
        """The cosines of all pairs of texts, (texts, texts), in one request. Options: layers, pooling, prompt."""
        return self._answer(self._asked("similarity", texts, _array, at_once=max(1, len(texts)), **options))

    def search(self, queries: Sequence[str], top: int = 10) -> Any:
        """The lines nearest to each query."""
        return self._answer(self._asked("search", queries, lambda found: [one["lines"] for one in found], top=top))

    def fill(self, text: str, top: int = 5, pair: str | None = None) -> Any:
        """The likeliest words for every mask."""
        inputs = [text if pair is None else [text, pair]]
        return self._answer(self._asked("fill", inputs, lambda found: found[0]["masks"], top=top))

    def predict(self, inputs: Sequence[Any]) -> Any:
        """What a fine-tuned model says of each input."""
        return self.call("predict", inputs)

    def translate(self, texts: Sequence[str], **options: Any) -> Any:
        """The translation of each text. Options: beam, length_penalty, max_length."""
        return self._answer(self._asked("translate", texts, lambda found: [_best(one) for one in found], **options))

    def generate(self, prompts: str | Sequence[str], **options: Any) -> Any:
        """How a prompt goes on, or each of several; lists of texts where `count` or `n_best` asks for several."""
        alone, several = isinstance(prompts, str), max(options.get("count", 1), options.get("n_best", 1)) > 1

        def texts(found: list[Any]) -> Any:
            given = [[text["text"] for text in one["texts"]] for one in found]
            each = given if several else [some[0] for some in given]
            return each[0] if alone else each

        # Samples depend on the others of their request, so all prompts are in one.
        inputs = [prompts] if isinstance(prompts, str) else prompts
        return self._answer(self._asked("generate", inputs, texts, at_once=max(1, len(inputs)), **options))

    def score(self, texts: Sequence[Any], **options: Any) -> Any:
        """How natural each text is, or how probable each translation."""
        return self.call("score", texts, **options)

    def tokenize(self, texts: Sequence[Any]) -> Any:
        """The pieces of each text or pair."""
        return self.call("tokenize", texts)

    def attention(self, texts: Sequence[Any], **options: Any) -> Any:
        """What each token of each text looks at: tokens, and weights (layers, heads, tokens, tokens).

        A Transformer that translates is given pairs of a source and its translation, and tells all three attentions.
        """
        return self._answer(self._asked("attention", texts, lambda found: [_weighted(one) for one in found], **options))

    def call(self, verb: str, inputs: Sequence[Any], **options: Any) -> Any:
        """The results of any verb, in the order of the inputs."""
        return self._answer(self._asked(verb, inputs, lambda found: found, **options))

    def _answer(self, answer: Coroutine[Any, Any, Any]) -> Any:
        """What a method gives back: the answer, or what can be awaited for it."""
        raise NotImplementedError

    def _connections(self) -> httpx2.AsyncClient:
        import httpx2

        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT)
        # Reading the certificates of all authorities takes longer than most answers, and http has no use for them.
        checked = not self.url.startswith("http://")
        return httpx2.AsyncClient(base_url=self.url, headers=self.headers, limits=limits, verify=checked)

    async def _info(self) -> dict[str, Any]:
        found: dict[str, Any] = await self._send("GET", "/info", _Call("info", {}, time.monotonic() + self.timeout))
        return found

    async def _asked(
        self,
        verb: str,
        inputs: Sequence[Any],
        shape: Callable[[list[Any]], Any],
        at_once: int | None = None,
        **options: Any,
    ) -> Any:
        """Ask for all inputs, so many at once, and make of the results what the method gives back."""
        if isinstance(inputs, str | Mapping):
            raise HeedfulError("a single input", remedy="give a list of inputs, such as [text]")
        if self.model is None:
            self.model = _only_model(await self._info())
        path, results = f"/v1/models/{self.model}/{verb}", list[Any]()
        for call in self._calls(verb, inputs, at_once or self.at_once, options):
            results += (await self._send("POST", path, call))["results"]
        return shape(_whole(results))

    def _calls(self, verb: str, inputs: Sequence[Any], at_once: int, options: Mapping[str, Any]) -> Iterator[_Call]:
        until = time.monotonic() + self.timeout
        given = {name: value for name, value in options.items() if value is not None}
        for start in range(0, len(inputs), at_once):
            yield _Call(verb, {"inputs": list(inputs[start : start + at_once]), **given}, until)

    async def _send(self, method: str, path: str, call: _Call) -> Any:
        import httpx2

        for attempt in range(1_000_000):
            try:
                body = {"json": dict(call.body)} if call.body else {}
                sent = self._http.request(method, path, timeout=call.left, **body)  # type: ignore[arg-type]
                response = await asyncio.wait_for(sent, call.left)
            except (httpx2.TimeoutException, asyncio.TimeoutError, TimeoutError):
                raise _late(call) from None
            except httpx2.TransportError as error:
                pause, refusal = call.pause(attempt, None), _unreachable(self.url, error)
            else:
                if response.status_code == 200:
                    return response.json()
                pause, refusal = call.pause(attempt, response.headers.get("retry-after")), _refused(response)
                if response.status_code not in AGAIN:
                    raise refusal
            if pause is None or not self.retry:
                raise refusal
            await asyncio.sleep(pause)
        raise _late(call)


def _refused(response: httpx2.Response) -> ServerError:
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        error = {}
    return ServerError(response.status_code, error if isinstance(error, Mapping) else {"message": str(error)})


def _late(call: _Call) -> HeedfulError:
    return HeedfulError(f"no answer to {call.verb} in time", remedy="allow more with timeout=…, or ask for less")


def _unreachable(url: str, error: Exception) -> HeedfulError:
    return HeedfulError(
        f"the server cannot be reached: {error}", where=url, remedy="check the address, and that it runs"
    )


def _whole(results: list[Any]) -> list[Any]:
    """All results; an input that failed alone is an error, as it is of a loaded model."""
    for one in results:
        if isinstance(one, dict) and "error" in one and isinstance(one["error"], dict):
            raise ServerError(one["error"].get("status", 422), one["error"])
    return results


def _vectors(results: list[Any], unit: str) -> Any:
    if unit == "sentence":
        return np.array(results, np.float32) if results else np.empty((0, 0), np.float32)
    return [np.array(one, np.float32) for one in results]


def _array(results: list[Any]) -> Any:
    return np.array(results, np.float32)


def _best(result: Mapping[str, Any]) -> str:
    return str(result["translations"][0]["text"])


def _weighted(result: Mapping[str, Any]) -> dict[str, Any]:
    """With arrays for weights; a translator tells three attentions, each in a part of its own."""
    if "weights" in result:
        return {**result, "weights": _array(result["weights"])}
    return {name: _weighted(part) if isinstance(part, Mapping) else part for name, part in result.items()}


def _only_model(info: Mapping[str, Any]) -> str:
    names = [model["name"] for model in info["models"]]
    if len(names) != 1:
        raise HeedfulError("the server has several models", remedy=f"choose one by `model`: {' or '.join(names)}")
    return str(names[0])


class AsyncClient(_Verbs):
    """A model of a server, with the methods of a loaded one to be awaited; many tasks may use it at once."""

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _answer(self, answer: Coroutine[Any, Any, Any]) -> Awaitable[Any]:
        return answer


class Client(_Verbs):
    """A model of a server, with the methods of a loaded one; many threads may use it at once."""

    _loop: asyncio.AbstractEventLoop | None = None
    _process = 0
    _starting = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; the next call opens them again."""
        with self._starting:
            loop, self._loop = self._loop, None
            if loop is not None and self._process == os.getpid():
                asyncio.run_coroutine_threadsafe(self._http.aclose(), loop).result()
                _stop(loop)

    def _answer(self, answer: Coroutine[Any, Any, Any]) -> Any:
        future = asyncio.run_coroutine_threadsafe(answer, self._running())
        try:
            return future.result()
        except BaseException:  # Ctrl-C too: nobody waits for it any more
            future.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        """The loop in its thread; a process that was forked off has neither, and makes its own."""
        with self._starting:
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process, self._http = asyncio.new_event_loop(), os.getpid(), self._connections()
                threading.Thread(target=_run, args=(self._loop,), name="heedful-client", daemon=True).start()
                weakref.finalize(self, _stop, self._loop)  # of a client that nobody has closed
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
