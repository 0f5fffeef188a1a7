"""OpenAI's embeddings: `/v1/embeddings` and `/v1/models`, as the package `openai` asks for them.

Vectors have length 1, as OpenAI's have.
"""

from __future__ import annotations

import base64
from typing import Any, Literal

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from heedful.serving.app import as_json
from heedful.serving.reading import parsed, read_body
from heedful.serving.refusals import Refusal
from heedful.serving.service import Service
from heedful.serving.wires.foreign import ForeignBody, Texts, ask, one_or_many


class EmbeddingsBody(ForeignBody):
    """What OpenAI's clients send."""

    input: str | Texts
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


class OpenAi:
    """OpenAI's routes."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def embeddings(self, request: Request) -> Response:
        """Vectors of texts."""
        body = parsed(EmbeddingsBody, await read_body(request, self.service.settings.max_body))
        served = self.service.catalogue.model(body.model)
        chosen = served, served.verb("embed")
        width = served.facts["width"]
        if body.dimensions not in (None, width):
            what = f"the vectors of {served.name} have {width} dimensions"
            raise Refusal(422, "wrong_value", what, field="dimensions", remedy="leave it out")
        answer = await ask(self.service, chosen, request, one_or_many(body.input), normalize=True)
        data = [
            {"object": "embedding", "index": number, "embedding": _encoded(vector, body.encoding_format)}
            for number, vector in enumerate(answer.results)
        ]
        usage = {"prompt_tokens": answer.tokens, "total_tokens": answer.tokens}
        return as_json({"object": "list", "data": data, "model": served.name, "usage": usage})

    async def models(self, request: Request) -> Response:
        """The models there are."""
        names = self.service.catalogue.models
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "heedful"} for name in names]
        return as_json({"object": "list", "data": data})


def _encoded(vector: Any, how: str) -> Any:
    return vector if how == "float" else base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()
