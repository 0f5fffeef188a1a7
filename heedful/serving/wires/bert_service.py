"""bert-as-service: vectors over HTTP (`/encode`) and over ZeroMQ, for the unchanged `bert-serving-client`.

Over ZeroMQ a client pushes [identity, message, number, count] to one port and subscribes to its identity on another,
where it gets [identity, JSON, bytes, number]. A message is a list of texts, or a command.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from heedful.errors import HeedfulError
from heedful.inference.features import Pieces
from heedful.serving.app import as_json
from heedful.serving.fair_queue import Job
from heedful.serving.reading import caller_of, parsed, read_body
from heedful.serving.refusals import Refusal
from heedful.serving.service import Caller, Service
from heedful.serving.verbs.embed import EmbedProgram
from heedful.serving.wires.foreign import ForeignBody, ask

logger = logging.getLogger("heedful.serving")
VERSION = "1.10.0"
# A client sends before its subscription has come; so long is waited for that.
SUBSCRIBES = 5.0


class EncodeBody(ForeignBody):
    """What its HTTP clients send."""

    id: int | str = 0
    texts: list[str] | list[list[str]] = Field(min_length=1)
    is_tokenized: bool = False


class BertService:
    """The vectors of the first model that has some."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def http(self, request: Request) -> Response:
        """`/encode`."""
        body = parsed(EncodeBody, await read_body(request, self.service.settings.max_body))
        vectors = await self.encode(body.texts, caller_of(request))
        return as_json({"id": body.id, "results": vectors, "status": 200})

    async def encode(self, texts: Sequence[Any], caller: Caller) -> Any:
        """The vectors (texts, width) of texts, or of lists of tokens."""
        if all(isinstance(text, str) for text in texts):
            chosen = self.service.catalogue.first_with("embed")
            return np.stack((await ask(self.service, chosen, caller, list(texts))).results)
        return await self._of_tokens(texts)

    def tokens(self, texts: Sequence[Any]) -> list[list[str]]:
        """What the model sees of each."""
        tokenizer = self._model.tokenizer
        return [tokenizer.encode(text).tokens if isinstance(text, str) else list(text) for text in texts]

    def config(self) -> dict[str, Any]:
        """What a client checks before it sends anything."""
        model = self._model
        return {
            "server_version": VERSION,
            "max_seq_len": model.limit(None),
            "show_tokens_to_client": True,
            "pooling_strategy": model.features((-1,), "concat", None, "sentence", False).pooling,
            "pooling_layer": [-1],
            "num_concurrent_socket": 1,
        }

    @property
    def _model(self) -> Any:
        return self.service.catalogue.first_with("embed")[0].model

    async def _of_tokens(self, texts: Sequence[Any]) -> Any:
        """Vectors of texts that are pieces already, which a tokenizer would cut once more."""
        model, limit = self._model, self._model.limit(None)
        if not all(isinstance(text, list) and all(isinstance(token, str) for token in text) for text in texts):
            raise Refusal(422, "wrong_value", "texts are neither strings nor lists of tokens", field="texts")
        if len(texts) > self.service.settings.max_inputs:
            raise Refusal(413, "too_many_inputs", "these are too many texts for one request", field="texts")
        tokenizer, pieces = model.tokenizer, list[Pieces]()
        frame = tokenizer.frame.single
        for text in texts:
            ids = [tokenizer.id_of(token) for token in text[:limit]]
            known = [tokenizer.unk_id if number is None else number for number in ids]
            room = limit - len(frame.before.ids) - len(frame.after.ids)
            pieces.append(Pieces([*frame.before.ids, *known[:room], *frame.after.ids], [], len(text) > room))
        program = EmbedProgram(model, model.features((-1,), "concat", None, "sentence", False))
        job = Job("tokens", program, pieces, [len(one.ids) for one in pieces])
        return np.stack(await asyncio.wrap_future(self.service.batcher.submit(job).future))


class ZmqFront:
    """The two ports of bert-as-service."""

    def __init__(self, bert: BertService, host: str, ports: tuple[int, int]) -> None:
        import zmq
        import zmq.asyncio

        self.bert, context = bert, zmq.asyncio.Context()
        self.context = context
        self.coming, self.going = context.socket(zmq.PULL), context.socket(zmq.XPUB)
        self.coming.setsockopt(zmq.MAXMSGSIZE, bert.service.settings.max_body)
        self.subscribed: dict[bytes, asyncio.Event] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        address = f"tcp://{'*' if host == '0.0.0.0' else host}"
        try:
            self.ports = [
                _bound(socket, address, port) for socket, port in ((self.coming, ports[0]), (self.going, ports[1]))
            ]
        except zmq.ZMQError as error:
            self.close()
            where, remedy = f"{address}, ports {ports}", "choose other ports with `bert_as_service`"
            raise HeedfulError(f"cannot listen there: {error}", where=where, remedy=remedy) from error

    async def run(self) -> None:
        """Answer until it is cancelled."""
        subscriptions = asyncio.ensure_future(self._subscriptions())
        try:
            while True:
                frames = await self.coming.recv_multipart()
                task = asyncio.ensure_future(self._answer(frames))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
        finally:
            subscriptions.cancel()
            if self.tasks:
                await asyncio.wait(self.tasks, timeout=self.bert.service.settings.drain)
            self.close()

    def close(self) -> None:
        """Close both ports."""
        self.context.destroy(linger=1000)

    async def _subscriptions(self) -> None:
        while True:
            frame: bytes = await self.going.recv()
            if frame[:1] == b"\x01":
                self._subscription(frame[1:]).set()
            else:
                self.subscribed.pop(frame[1:], None)

    def _subscription(self, identity: bytes) -> asyncio.Event:
        return self.subscribed.setdefault(identity, asyncio.Event())

    async def _answer(self, frames: list[bytes]) -> None:
        if len(frames) != 4:
            return
        identity, message, number, _ = frames
        try:
            told, content = await self._told(identity, message)
        except Exception as error:  # whatever is wrong with a message, its client waits for an answer
            if not isinstance(error, Refusal):
                logger.error("a message could not be answered", exc_info=error)
            told, content = {"error": error.message if isinstance(error, Refusal) else "internal"}, b""
        try:
            await asyncio.wait_for(self._subscription(identity).wait(), SUBSCRIBES)
        except (TimeoutError, asyncio.TimeoutError):
            self.subscribed.pop(identity, None)
            return
        await self.going.send_multipart([identity, orjson.dumps(told), content, number])

    async def _told(self, identity: bytes, message: bytes) -> tuple[dict[str, Any], bytes]:
        if message == b"SHOW_CONFIG":
            return self.bert.config(), b""
        if message == b"SHOW_STATUS":
            return {"num_waiting_tokens": self.bert.service.batcher.queue.waiting}, b""
        try:
            texts = orjson.loads(message)
        except orjson.JSONDecodeError:
            raise Refusal(400, "not_json", "the message is not JSON") from None
        if not isinstance(texts, list) or not texts:
            raise Refusal(422, "wrong_value", "the message is no list of texts")
        vectors = await self.bert.encode(texts, Caller(identity.hex()))
        told = {"dtype": str(vectors.dtype), "shape": list(vectors.shape), "tokens": self.bert.tokens(texts)}
        return told, np.ascontiguousarray(vectors).tobytes()


def _bound(socket: Any, address: str, port: int) -> int:
    if port:
        socket.bind(f"{address}:{port}")
        return port
    found: int = socket.bind_to_random_port(address)
    return found
