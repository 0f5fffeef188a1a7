"""Reading a request: its key, its body within limits, and its fields."""

from __future__ import annotations

import hmac
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from heedful.serving.refusals import Refusal
from heedful.serving.service import Caller, ClientGone

M = TypeVar("M", bound=BaseModel)
DROPPED = 64 * 2**20  # bytes of a refused body that are taken at most; its deadline is that of every body
SHOWN = 60  # characters of a name that a client has made up


def check_key(request: Request, key: bytes | None) -> None:
    """Refuse a request without the server's key, in a time that tells nothing of it."""
    if key is None:
        return
    given = request.headers.get("x-api-key", "")
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        given = token.strip()
    if not hmac.compare_digest(given.encode("latin-1", "replace"), key):
        remedy = "send it as `Authorization: Bearer KEY` or as `X-API-Key: KEY`"
        raise Refusal(401, "wrong_key", "the server's key is missing or wrong", remedy=remedy)


async def read_body(request: Request, most: int) -> bytes:
    """The body, of at most so many bytes and not compressed."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        remedy = "send it as it is"
        raise Refusal(415, "compressed", "a compressed body is not read", field="content-encoding", remedy=remedy)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        remedy = "send `Content-Type: application/json`"
        raise Refusal(415, "not_declared", "the body is not declared as JSON", field="content-type", remedy=remedy)
    announced = request.headers.get("content-length", "0")
    _check_size(int(announced) if announced.isascii() and announced.isdigit() else 0, most)
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part: bytes = message.get("body", b"")
        size += len(part)
        more = request.state.more_body = message.get("more_body", False)
        _check_size(size, most)
        parts.append(part)
    return b"".join(parts)


async def drop_body(request: Request) -> None:
    """Take what a refused request still sends, within bounds: it would else be cut off before it reads why.

    Who asks first whether to send it at all (`Expect: 100-continue`) is told without it.
    """
    size, more = 0, getattr(request.state, "more_body", "expect" not in request.headers)
    while more and size < DROPPED:
        message = await request.receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)


def caller_of(request: Request) -> Caller:
    """Who has sent a request whose body was read; each connection takes its own turns."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            continue

    client = request.client
    return Caller(f"{client.host}:{client.port}" if client else "unknown", gone)


def parsed(kind: type[M], body: bytes) -> M:
    """The fields of a body, checked; what is wrong is told with its place."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise refused(error) from None


def refused(error: ValidationError) -> Refusal:
    """The first of the things that are wrong, in a sentence.

    Where a field may be a text or a list, pydantic tells what is wrong with it as either: the one is meant that is more
    than another type, or goes deeper. Which of them it was stands in the place, and is left out.
    """
    every = error.errors(include_url=False, include_context=False, include_input=False)
    same = [one for one in every if one["loc"][:1] == every[0]["loc"][:1]]
    first = max(same, key=lambda one: (len(one["loc"]), not one["type"].endswith("_type")))
    kind, message = first["type"], first["msg"]
    place = ".".join(str(part) for part in first["loc"] if part != "str" and "[" not in str(part))[:SHOWN]
    if kind == "json_invalid":
        remedy = "send a JSON object in UTF-8, no half of a surrogate pair in it"
        return Refusal(400, "not_json", message.replace("Invalid JSON", "the body is not JSON"), remedy=remedy)
    if kind == "missing":
        return Refusal(422, "missing", f"the field {place} is missing", field=place)
    if kind == "extra_forbidden":
        return Refusal(422, "unknown_field", f"there is no field {place}", field=place, remedy="see /docs")
    return Refusal(422, "wrong_value", f"{place or 'the body'}: {message}", field=place or None)


def _check_size(size: int, most: int) -> None:
    if size > most:
        what = f"a body of more than {most:,} bytes is not read"
        raise Refusal(413, "body_too_large", what, remedy="send it in several requests")
