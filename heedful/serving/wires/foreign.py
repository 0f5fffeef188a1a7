"""What the wire formats of others have in common: lenient bodies, and no item that fails alone."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from heedful.serving.catalogue import Served
from heedful.serving.reading import caller_of
from heedful.serving.service import Answer, Caller, Service
from heedful.serving.verbs.verb import Verb

Texts = Annotated[list[str], Field(min_length=1)]


class ForeignBody(BaseModel):
    """A body of another's format; what we do not know of it is passed over, as others do."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


async def ask(
    service: Service, chosen: tuple[Served, Verb[Any]], caller: Request | Caller, inputs: list[Any], **options: Any
) -> Answer:
    """The answer of a verb; an input that cannot be answered refuses the whole request."""
    served, verb = chosen
    asked = verb.asked.model_validate({"inputs": inputs, **options})
    who = caller if isinstance(caller, Caller) else caller_of(caller)
    return await service.answer(served, verb, asked, who, whole=True)


def one_or_many(given: str | list[str]) -> list[str]:
    """A text or several, as a list."""
    return [given] if isinstance(given, str) else given
