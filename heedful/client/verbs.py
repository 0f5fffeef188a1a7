"""What both clients ask, what becomes of the results, retries and the deadline; how bytes travel is a client's own."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from heedful.errors import HeedfulError

AT_ONCE = 256  # inputs of a request
AGAIN = (429, 503)  # statuses that a later try may change
LONGEST_PAUSE = 5.0  # seconds, where the server does not say how long
KEPT = 256  # connections that are kept for the next request
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class ServerError(HeedfulError):
    """The server has refused a request; `status`, `code` and `field` are its own words."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        where = error.get("field")
        super().__init__(str(error.get("message", f"status {status}")), where=where, remedy=error.get("remedy"))
        self.status, self.code, self.field = status, error.get("code"), where


class Reply(NamedTuple):
    """What a server has answered."""

    status: int
    retry_after: str | None
    content: bytes


@dataclass(frozen=True)
class _Call:
    """A request, and until when it must be answered."""

    verb: str
    body: bytes
    until: float

    @property
    def left(self) -> float:
        return self.until - time.monotonic()

    def pause(self, attempt: int, retry_after: str | None = None) -> float | None:
        """Seconds until the next try; None if there is no time left for one."""
        told = float(retry_after) if retry_after and retry_after.isdecimal() else None
        pause = told if told is not None else min(LONGEST_PAUSE, 0.1 * 2**attempt) * random.uniform(0.5, 1.0)
        return pause if pause < self.left else None


class Verbs:
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
        _check_address(url)
        self.url, self.model, self.timeout = url.rstrip("/"), model, timeout
        self.at_once, self.retry = at_once, retry
        if api_key and not api_key.isprintable():
            raise HeedfulError("the key has characters that no key has", remedy="strip it of the end of its line")
        self.headers = {"accept": "application/json", "content-type": "application/json"}
        self.headers |= {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._open()

    def info(self) -> Any:
        """Models, verbs, limits and versions of the server."""
        return self._answer(self._info(time.monotonic() + self.timeout))

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

    def _open(self) -> None:
        """Make what the connections are kept in."""
        raise NotImplementedError

    def _answer(self, answer: Coroutine[Any, Any, Any]) -> Any:
        """What a method gives back: the answer, or what can be awaited for it."""
        raise NotImplementedError

    async def _exchange(self, method: str, path: str, body: bytes, seconds: float) -> Reply:
        """What the server answers to a request, within so many seconds; an OSError if there is no answer."""
        raise NotImplementedError

    async def _sleep(self, seconds: float) -> None:
        raise NotImplementedError

    async def _info(self, until: float) -> dict[str, Any]:
        found: dict[str, Any] = await self._send("GET", "/info", _Call("info", b"", until))
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
        until = time.monotonic() + self.timeout
        if self.model is None:
            self.model = _only_model(await self._info(until))
        path, results = f"/v1/models/{self.model}/{verb}", list[Any]()
        for body in _bodies(inputs, at_once or self.at_once, options):
            results += (await self._send("POST", path, _Call(verb, body, until)))["results"]
        return shape(_whole(results))

    async def _send(self, method: str, path: str, call: _Call) -> Any:
        for attempt in count():
            if call.left <= 0:
                break
            try:
                reply = await self._exchange(method, path, call.body, call.left)
            except OSError as error:
                if call.left <= 0:
                    break
                pause, refusal = call.pause(attempt), _unreachable(self.url, error)
            else:
                if reply.status == 200:
                    return _read(reply, self.url)
                pause, refusal = call.pause(attempt, reply.retry_after), _refused(reply)
                if reply.status not in AGAIN:
                    raise refusal
            if pause is None or not self.retry:
                raise refusal
            await self._sleep(pause)
        raise _late(call)


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of a port that is no number
        sound = False
    if not sound:
        remedy = "write http://HOST:PORT" if "//" in url else f"write http://{url}"
        raise HeedfulError("this is no address of a server", where=url, remedy=remedy)


def _bodies(inputs: Sequence[Any], at_once: int, options: Mapping[str, Any]) -> Iterator[bytes]:
    """The requests for all inputs, so many in each."""
    given = {name: value for name, value in options.items() if value is not None}
    for start in range(0, len(inputs), at_once):
        asked = {"inputs": list(inputs[start : start + at_once]), **given}
        yield ENCODER.encode(asked).encode()


def _read(reply: Reply, url: str) -> Any:
    try:
        return json.loads(reply.content)
    except ValueError:
        what = "what answers there is not heedful serve"
        raise HeedfulError(what, where=url, remedy="check the address, and what stands before the server") from None


def _refused(reply: Reply) -> ServerError:
    try:
        error = json.loads(reply.content)["error"]
    except (ValueError, KeyError, TypeError):
        error = {}
    return ServerError(reply.status, error if isinstance(error, Mapping) else {"message": str(error)})


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
