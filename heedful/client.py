"""A client of `heedful serve` with the methods of a loaded model; importing it loads neither torch nor the server.

    from heedful.client import Client
    with Client("http://127.0.0.1:8000") as model:        # Client(url, model="mini", api_key="…")
        vectors = model.embed(["one text", "another"])

Many inputs are sent in several requests and come back in order. Connections are kept. A server that is busy or not
ready yet is asked again when it says so, until the total deadline is over. `AsyncClient` has the same methods to be
awaited.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.errors import HeedfulError

if TYPE_CHECKING:
    import httpx2

AT_ONCE = 256  # inputs of a request
AGAIN = (429, 503)  # statuses that a later try may change
LONGEST_PAUSE = 5.0  # seconds, where the server does not say how long


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
    """The requests that each method comes to; how they are sent is the affair of the two clients."""

    def __init__(self, url: str, model: str | None, api_key: str | None, timeout: float, at_once: int) -> None:
        if timeout <= 0 or at_once < 1:
            raise HeedfulError("timeout and at_once must be above 0", remedy="leave them out")
        self.url, self.model, self.timeout, self.at_once = url.rstrip("/"), model, timeout, at_once
        self.headers = {"authorization": f"Bearer {api_key}"} if api_key else {}

    def _calls(self, verb: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Iterator[_Call]:
        if isinstance(inputs, str | Mapping):
            raise HeedfulError("a single input", remedy="give a list of inputs, such as [text]")
        until = time.monotonic() + self.timeout
        given = {name: value for name, value in options.items() if value is not None}
        for start in range(0, len(inputs), self.at_once):
            yield _Call(verb, {"inputs": list(inputs[start : start + self.at_once]), **given}, until)

    def _chosen(self, info: Mapping[str, Any]) -> str:
        names = [model["name"] for model in info["models"]]
        if len(names) != 1:
            raise HeedfulError("the server has several models", remedy=f"choose one: model={' or '.join(names)}")
        return str(names[0])


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


class Client(_Verbs):
    """A model of a server, with the methods of a loaded one."""

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
        import httpx2

        super().__init__(url, model, api_key, timeout, at_once)
        self.retry = retry
        self._http = httpx2.Client(base_url=self.url, headers=self.headers)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def info(self) -> dict[str, Any]:
        """Models, verbs, limits and versions of the server."""
        found: dict[str, Any] = self._send("GET", "/info", _Call("info", {}, time.monotonic() + self.timeout))
        return found

    def embed(self, texts: Sequence[str], unit: str = "sentence", **options: Any) -> Any:
        """Vectors (texts, width); of words or tokens a list of arrays. Options: layers, combine, pooling, normalize."""
        return _vectors(self.call("embed", texts, unit=unit, **options), unit)

    def similarity(self, texts: Sequence[str], **options: Any) -> Any:
        """The cosines of all pairs of texts, (texts, texts); all of them in one request."""
        before, self.at_once = self.at_once, max(self.at_once, len(texts))
        try:
            return np.array(self.call("similarity", texts, **options), np.float32)
        finally:
            self.at_once = before

    def search(self, queries: Sequence[str], top: int = 10) -> list[list[dict[str, Any]]]:
        """The lines nearest to each query."""
        return [one["lines"] for one in self.call("search", queries, top=top)]

    def fill(self, text: str, top: int = 5, pair: str | None = None) -> list[dict[str, Any]]:
        """The likeliest words for every mask."""
        (found,) = self.call("fill", [text if pair is None else [text, pair]], top=top)
        masks: list[dict[str, Any]] = found["masks"]
        return masks

    def predict(self, inputs: Sequence[Any]) -> list[dict[str, Any]]:
        """What a fine-tuned model says of each input."""
        return self.call("predict", inputs)

    def translate(self, texts: Sequence[str], **options: Any) -> list[str]:
        """The translation of each text. Options: beam, length_penalty, max_length."""
        return [one["translations"][0]["text"] for one in self.call("translate", texts, **options)]

    def score(self, texts: Sequence[Any], **options: Any) -> list[dict[str, Any]]:
        """How natural each text is, or how probable each translation."""
        return self.call("score", texts, **options)

    def tokenize(self, texts: Sequence[Any]) -> list[dict[str, Any]]:
        """The pieces of each text or pair."""
        return self.call("tokenize", texts)

    def attention(self, texts: Sequence[Any], **options: Any) -> list[dict[str, Any]]:
        """What each token of each text looks at: tokens, and weights (layers, heads, tokens, tokens)."""
        found = self.call("attention", texts, **options)
        return [{**one, "weights": np.array(one["weights"], np.float32)} for one in found]

    def call(self, verb: str, inputs: Sequence[Any], **options: Any) -> list[Any]:
        """The results of any verb, in the order of the inputs."""
        if self.model is None:
            self.model = self._chosen(self.info())
        path, results = f"/v1/models/{self.model}/{verb}", list[Any]()
        for call in self._calls(verb, inputs, options):
            results += self._send("POST", path, call)["results"]
        return _whole(results)

    def _send(self, method: str, path: str, call: _Call) -> Any:
        import httpx2

        for attempt in range(1_000_000):
            try:
                body = {"json": dict(call.body)} if call.body else {}
                response = self._http.request(method, path, timeout=call.left, **body)  # type: ignore[arg-type]
            except httpx2.TimeoutException:
                raise _late(call) from None
            except httpx2.TransportError as error:
                pause, refusal = call.pause(attempt, None), _unreachable(self.url, error)
            else:
                if response.status_code == 200:
                    return response.json()
                pause, refusal = call.pause(attempt, response.headers.get("retry-after")), _refused(response)
                if response.status_code not in AGAIN or not self.retry:
                    raise refusal
            if pause is None:
                raise refusal
            time.sleep(pause)
        raise _late(call)


class AsyncClient(_Verbs):
    """As `Client`, with methods to be awaited; it may be used by many tasks at once."""

    def __init__(
        self,
        url: str,
        model: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        at_once: int = AT_ONCE,
        retry: bool = True,
    ) -> None:
        """As for `Client`."""
        import httpx2

        super().__init__(url, model, api_key, timeout, at_once)
        self.retry = retry
        self._http = httpx2.AsyncClient(base_url=self.url, headers=self.headers)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._http.aclose()

    async def info(self) -> dict[str, Any]:
        """Models, verbs, limits and versions of the server."""
        found: dict[str, Any] = await self._send("GET", "/info", _Call("info", {}, time.monotonic() + self.timeout))
        return found

    async def embed(self, texts: Sequence[str], unit: str = "sentence", **options: Any) -> Any:
        """Vectors of texts."""
        return _vectors(await self.call("embed", texts, unit=unit, **options), unit)

    async def predict(self, inputs: Sequence[Any]) -> list[dict[str, Any]]:
        """What a fine-tuned model says of each input."""
        return await self.call("predict", inputs)

    async def translate(self, texts: Sequence[str], **options: Any) -> list[str]:
        """The translation of each text."""
        return [one["translations"][0]["text"] for one in await self.call("translate", texts, **options)]

    async def call(self, verb: str, inputs: Sequence[Any], **options: Any) -> list[Any]:
        """The results of any verb, in the order of the inputs."""
        if self.model is None:
            self.model = self._chosen(await self.info())
        path, results = f"/v1/models/{self.model}/{verb}", list[Any]()
        for call in self._calls(verb, inputs, options):
            results += (await self._send("POST", path, call))["results"]
        return _whole(results)

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
                if response.status_code not in AGAIN or not self.retry:
                    raise refusal
            if pause is None:
                raise refusal
            await asyncio.sleep(pause)
        raise _late(call)
