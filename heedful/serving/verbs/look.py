"""What a model sees of a text: its tokens, and what they look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from heedful.errors import HeedfulError
from heedful.inference.attention_maps import Sequences, attention_input, attention_weights
from heedful.inference.embedder import Embedder
from heedful.serving.verbs.verb import AskedPairs, Verb, Work, two_texts
from heedful.text.tokenizer import Tokenizer

# A map has layers × heads × tokens² numbers, all of which go over the wire.
MOST_TOKENS = 128


class Tokenize(Verb[AskedPairs]):
    """The pieces of texts."""

    name: ClassVar[str] = "tokenize"
    about: ClassVar[str] = "The pieces of texts or pairs, with ids, segments, and the characters they stand for."
    asked = AskedPairs

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def read(self, asked: AskedPairs, given: Any) -> Any:
        return two_texts(given)

    def work(self, asked: AskedPairs, inputs: Sequence[Any]) -> Work:
        found = [self._pieces(*both) for both in inputs]
        return Work(finish=lambda nothing: found)

    def _pieces(self, text: str, pair: str | None) -> dict[str, Any]:
        encoding = self.tokenizer.encode(text, pair)
        return {
            "tokens": encoding.tokens,
            "ids": encoding.ids,
            "segments": encoding.type_ids,
            "offsets": encoding.offsets,
        }


class AttentionAsked(AskedPairs):
    """Texts or pairs, and which weights."""

    layers: list[int] | None = Field(None, min_length=1, max_length=64, description="1 … L; by default all.")
    heads: list[int] | None = Field(None, min_length=1, max_length=64, description="0 … H - 1; by default all.")


@dataclass(frozen=True)
class AttentionProgram:
    """The attention weights of one model."""

    one_pass: ClassVar[bool] = True
    model: Embedder

    def compute(self, units: Sequences) -> Sequence[Any]:
        """The weights of texts in one batch."""
        return attention_weights(self.model.encoder, units, self.model.device)


class Attention(Verb[AttentionAsked]):
    """What each token looks at."""

    name: ClassVar[str] = "attention"
    about: ClassVar[str] = f"The attention weights of texts of at most {MOST_TOKENS} tokens, by layer and head."
    asked = AttentionAsked

    def __init__(self, model: Embedder) -> None:
        self.model = model

    def read(self, asked: AttentionAsked, given: Any) -> Any:
        first, second = two_texts(given)
        text = first if second is None else (first, second)
        ids, segments, tokens = attention_input(self.model.tokenizer, text, self.model.limit(None))
        if len(ids) > MOST_TOKENS:
            what = f"the text has {len(ids)} tokens, and weights are given for at most {MOST_TOKENS}"
            raise HeedfulError(what, remedy="shorten it")
        return ids, segments, tokens

    def work(self, asked: AttentionAsked, inputs: Sequence[Any]) -> Work:
        layers = self._chosen(asked.layers, 1, self.model.encoder.layer_count, "layer")

        def told(results: list[Any]) -> list[Any]:
            return [
                {"tokens": tokens, "segments": segments, "layers": layers, **self._weights(weights, layers, asked)}
                for (_, segments, tokens), weights in zip(inputs, results, strict=True)
            ]

        units = [(ids, segments) for ids, segments, _ in inputs]
        return Work(AttentionProgram(self.model), units, [len(ids) for ids, _ in units], told)

    def _weights(self, weights: Any, layers: list[int], asked: AttentionAsked) -> dict[str, Any]:
        heads = self._chosen(asked.heads, 0, weights.shape[1] - 1, "head")
        chosen = weights[[layer - 1 for layer in layers]][:, heads]
        return {"heads": heads, "weights": chosen.round(5).copy()}

    def _chosen(self, asked: list[int] | None, first: int, last: int, kind: str) -> list[int]:
        chosen = list(range(first, last + 1)) if asked is None else asked
        for number in chosen:
            if not first <= number <= last:
                raise HeedfulError(f"there is no {kind} {number}", remedy=f"the {kind}s are {first} … {last}")
        return chosen
