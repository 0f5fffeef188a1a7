"""The routes of text-embeddings-inference, as `huggingface_hub.InferenceClient` and its other clients ask for them.

They name no model: each route is answered by the first one that can.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from heedful.serving.app import as_json
from heedful.serving.reading import parsed, read_body
from heedful.serving.refusals import Refusal
from heedful.serving.service import Service
from heedful.serving.wires.foreign import ForeignBody, Texts, ask, one_or_many


class EmbedBody(ForeignBody):
    """Texts to embed."""

    inputs: str | Texts
    normalize: bool | None = True


class PredictBody(ForeignBody):
    """A text, a pair, or several of either."""

    inputs: str | Texts | Annotated[list[Texts], Field(min_length=1)]
    parameters: dict[str, Any] | None = None  # Hugging Face's own client sends some, and wants a list in a list back


class RerankBody(ForeignBody):
    """A query, and texts to be put in order."""

    query: str
    texts: Texts
    return_text: bool = False


class Sentences(ForeignBody):
    """A sentence, and those to compare it with."""

    source_sentence: str
    sentences: Texts


class SimilarityBody(ForeignBody):
    """Sentences to compare."""

    inputs: Sentences


class TokenizeBody(ForeignBody):
    """Texts to cut into pieces."""

    inputs: str | Texts
    add_special_tokens: bool = True


class Tei:
    """The routes."""

    def __init__(self, service: Service) -> None:
        self.service, self.catalogue = service, service.catalogue

    async def embed(self, request: Request) -> Response:
        """A vector for each text."""
        body = parsed(EmbedBody, await self._body(request))
        return as_json(await self._vectors(request, one_or_many(body.inputs), normalize=body.normalize is not False))

    async def embed_all(self, request: Request) -> Response:
        """A vector for each token of each text."""
        body = parsed(EmbedBody, await self._body(request))
        return as_json(await self._vectors(request, one_or_many(body.inputs), unit="token"))

    async def predict(self, request: Request) -> Response:
        """The labels of each text or pair, the likeliest first."""
        body = parsed(PredictBody, await self._body(request))
        given = body.inputs
        several = not isinstance(given, str) and isinstance(given[0], list)
        inputs = given if several and isinstance(given, list) else [given]
        inputs = [one[0] if isinstance(one, list) and len(one) == 1 else one for one in inputs]
        answer = await ask(self.service, self.catalogue.first_with("classify"), request, inputs)
        labels = [_labels(one) for one in answer.results]
        return as_json(labels if several or body.parameters is not None else labels[0])

    async def rerank(self, request: Request) -> Response:
        """Texts by how well they go with a query: by a model for pairs, or else by the cosines of their vectors."""
        body = parsed(RerankBody, await self._body(request))
        scores = await self._scores(request, body)
        ranked = sorted(enumerate(scores), key=lambda pair: -pair[1])
        texts = [{"text": body.texts[number]} if body.return_text else {} for number, _ in ranked]
        return as_json([{"index": n, "score": score, **text} for (n, score), text in zip(ranked, texts, strict=True)])

    async def similarity(self, request: Request) -> Response:
        """The cosine of a sentence with each of others."""
        given = parsed(SimilarityBody, await self._body(request)).inputs
        return as_json(await self._cosines(request, given.source_sentence, given.sentences))

    async def tokenize(self, request: Request) -> Response:
        """The pieces of each text."""
        body = parsed(TokenizeBody, await self._body(request))
        answer = await ask(self.service, self.catalogue.first_with("tokenize"), request, one_or_many(body.inputs))
        return as_json([_pieces(one, body.add_special_tokens) for one in answer.results])

    async def root(self, request: Request) -> Response:
        """What clients mean that know one address only: similarity, labels or vectors, by what they send."""
        body = await self._body(request)
        if b'"source_sentence"' in body[:200]:
            return await self.similarity(_again(request, body))
        fine_tuned = "classify" in next(iter(self.catalogue.models.values())).verbs
        return await (self.predict if fine_tuned else self.embed)(_again(request, body))

    async def _scores(self, request: Request, body: RerankBody) -> list[float]:
        for served in self.catalogue.models.values():
            if "regress" in served.verbs and served.facts.get("pairs") is not False:
                pairs = [[body.query, text] for text in body.texts]
                answer = await ask(self.service, (served, served.verbs["regress"]), request, pairs)
                return [float(one["value"]) for one in answer.results]
        return await self._cosines(request, body.query, body.texts)

    async def _cosines(self, request: Request, first: str, others: list[str]) -> list[float]:
        vectors = await self._vectors(request, [first, *others], normalize=True)
        return [float(vectors[0] @ vector) for vector in vectors[1:]]

    async def _vectors(self, request: Request, texts: list[str], **options: Any) -> Any:
        return (await ask(self.service, self.catalogue.first_with("embed"), request, texts, **options)).results

    async def _body(self, request: Request) -> bytes:
        known: bytes | None = getattr(request.state, "body", None)
        return known if known is not None else await read_body(request, self.service.settings.max_body)


def _again(request: Request, body: bytes) -> Request:
    """The request with its body, which can be received only once."""
    request.state.body = body
    return request


def _labels(answer: dict[str, Any]) -> list[dict[str, Any]]:
    shares: dict[str, float] | None = answer.get("probabilities")
    if shares is None:
        raise Refusal(422, "not_possible", "this model gives no probabilities")
    ranked = sorted(shares.items(), key=lambda pair: -pair[1])
    return [{"label": label, "score": share} for label, share in ranked]


def _pieces(found: dict[str, Any], special: bool) -> list[dict[str, Any]]:
    pieces = zip(found["ids"], found["tokens"], found["offsets"], strict=True)
    told = [
        {"id": number, "text": token, "special": start == stop, "start": start, "stop": stop}
        for number, token, (start, stop) in pieces
    ]
    return [one for one in told if special or not one["special"]]
