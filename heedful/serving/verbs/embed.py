"""Vectors, the cosines between them, and the lines that are nearest to a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from heedful.inference.embedder import Embedder
from heedful.inference.features import Features, Pieces, Vectors
from heedful.inference.search import Hit, Index, check_query
from heedful.serving.verbs.verb import AskedTexts, Verb, Work

MOST_NEAREST = 1000
Pooling = Literal["cls", "mean", "max", "mean-max", "weighted-mean", "last"]
PROMPT = Field(
    None, max_length=100, description="The name of a prompt of the folder, such as query, to put before each text."
)


class EmbedAsked(AskedTexts):
    """What to make vectors of, and how."""

    layers: tuple[int, ...] = Field((-1,), min_length=1, max_length=64, description="0 = embeddings, -1 = last.")
    combine: Literal["concat", "sum", "mean"] = Field("concat", description="How several layers are joined.")
    pooling: Pooling | None = Field(
        None, description="How the tokens of a text, or the pieces of a word, are joined; by default the folder's way."
    )
    unit: Literal["sentence", "word", "token"] = Field("sentence", description="What becomes one vector.")
    normalize: bool = Field(False, description="Scale every vector to length 1.")
    prompt: str | None = PROMPT
    max_length: int | None = Field(None, ge=1, le=1_000_000, description="The limit in tokens; what is longer is cut.")


class SimilarityAsked(AskedTexts):
    """Texts to compare with one another."""

    layers: tuple[int, ...] = Field((-1,), min_length=1, max_length=64, description="0 = embeddings, -1 = last.")
    pooling: Pooling | None = Field(
        None, description="How the tokens of a text are joined; by default the folder's way."
    )
    prompt: str | None = PROMPT


class SearchAsked(AskedTexts):
    """Queries, each of which gets the lines nearest to it."""

    top: int = Field(10, ge=1, le=MOST_NEAREST, description="How many lines.")


@dataclass(frozen=True)
class EmbedProgram:
    """Vectors of one kind from one model."""

    one_pass: ClassVar[bool] = True
    model: Embedder
    wanted: Features

    def compute(self, units: Sequence[Pieces]) -> Sequence[Vectors]:
        """The vectors of texts in one batch."""
        return self.model.vectors_of(units, self.wanted)


def embed_work(model: Embedder, wanted: Features, texts: Sequence[str], max_length: int | None) -> Work:
    """The work for the vectors of texts."""
    pieces = model.pieces_of(texts, wanted, model.limit(max_length))
    return Work(
        EmbedProgram(model, wanted),
        pieces,
        [len(one.ids) for one in pieces],
        truncated=[number for number, one in enumerate(pieces) if one.truncated],
    )


class Embed(Verb[EmbedAsked]):
    """Vectors of texts, words or tokens."""

    name: ClassVar[str] = "embed"
    about: ClassVar[str] = "Vectors of texts, of their words or of their tokens."
    asked = EmbedAsked

    def __init__(self, model: Embedder) -> None:
        self.model = model

    def work(self, asked: EmbedAsked, inputs: Sequence[Any]) -> Work:
        how = (asked.layers, asked.combine, asked.pooling, asked.unit, asked.normalize, asked.prompt)
        wanted = self.model.features(*how)
        return embed_work(self.model, wanted, inputs, asked.max_length)


class Similarity(Verb[SimilarityAsked]):
    """The cosines of all pairs of texts."""

    name: ClassVar[str] = "similarity"
    about: ClassVar[str] = "The cosines of all pairs of texts: a row for each text."
    asked = SimilarityAsked

    def __init__(self, model: Embedder) -> None:
        self.model = model

    def work(self, asked: SimilarityAsked, inputs: Sequence[Any]) -> Work:
        wanted = self.model.features(asked.layers, "concat", asked.pooling, "sentence", True, asked.prompt)
        work = embed_work(self.model, wanted, inputs, None)
        return Work(work.program, work.units, work.sizes, _cosines, work.truncated)


def _cosines(results: list[Any]) -> list[Any]:
    vectors = np.stack(results)
    return list(vectors @ vectors.T)


class Search(Verb[SearchAsked]):
    """The lines given at the start that are nearest to a query."""

    name: ClassVar[str] = "search"
    about: ClassVar[str] = "The lines nearest to a query, of those the server was started with."
    asked = SearchAsked

    def __init__(self, index: Index) -> None:
        self.index = index

    def read(self, asked: SearchAsked, given: Any) -> Any:
        check_query(given)
        return given

    def work(self, asked: SearchAsked, inputs: Sequence[Any]) -> Work:
        index = self.index
        work = embed_work(index.embedder, index.wanted, inputs, index.record.max_length)

        def nearest(results: list[Any]) -> list[Any]:
            found = index.nearest(np.stack(results), asked.top)
            return [{"lines": [_hit(hit) for hit in hits]} for hits in found]

        return Work(work.program, work.units, work.sizes, nearest, work.truncated)


def _hit(hit: Hit) -> dict[str, Any]:
    """A line as it is told; of its file the name, and not the path on this machine."""
    told = {"line": hit.line, "text": hit.text, "cosine": hit.cosine}
    return {**told, "source": Path(hit.source).name} if hit.source else told
