"""What a model sees of a text: its tokens, and what they look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from heedful.errors import HeedfulError
from heedful.inference.attention_maps import Sequences, attention_input, attention_weights
from heedful.inference.embedder import Embedder
from heedful.inference.teacher_forced import encode_sides
from heedful.inference.transformer_attention import TransformerMaps, transformer_maps
from heedful.inference.translator import Translator
from heedful.models.transformer import TransformerConfig
from heedful.serving.verbs.translate import PairsAsked, encoded_sides, source_and_target
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


class ChosenWeights(BaseModel):
    """Which weights."""

    layers: list[int] | None = Field(None, min_length=1, max_length=64, description="1 … L; by default all.")
    heads: list[int] | None = Field(None, min_length=1, max_length=64, description="0 … H - 1; by default all.")


class AttentionAsked(AskedPairs, ChosenWeights):
    """Texts or pairs, and which weights."""


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
        check_tokens(len(ids))
        return ids, segments, tokens

    def work(self, asked: AttentionAsked, inputs: Sequence[Any]) -> Work:
        chosen_of(asked.layers, 1, self.model.encoder.layer_count, "layer")

        def told(results: list[Any]) -> list[Any]:
            return [
                {"tokens": tokens, "segments": segments, **chosen_weights(weights, asked)}
                for (_, segments, tokens), weights in zip(inputs, results, strict=True)
            ]

        units = [(ids, segments) for ids, segments, _ in inputs]
        return Work(AttentionProgram(self.model), units, [len(ids) for ids, _ in units], told)


class TranslationAttentionAsked(PairsAsked, ChosenWeights):
    """Sources with their translations, and which weights."""


@dataclass(frozen=True)
class TranslationAttentionProgram:
    """The three attentions of one Transformer that translates."""

    one_pass: ClassVar[bool] = True
    translator: Translator

    def compute(self, units: Sequence[tuple[list[int], list[int]]]) -> Sequence[Any]:
        """The weights of pairs, one after the other."""
        return transformer_maps(self.translator.folder, encoded_sides(units))


class TranslationAttention(Verb[TranslationAttentionAsked]):
    """What the pieces of a sentence and of its translation look at."""

    name: ClassVar[str] = "attention"
    about: ClassVar[str] = (
        "All three attentions of pairs of a source and its translation: of the source to itself, of the translation "
        f"to its past (decoder) and to the source (cross); at most {MOST_TOKENS} tokens a side."
    )
    asked = TranslationAttentionAsked

    def __init__(self, translator: Translator) -> None:
        self.translator = translator

    def read(self, asked: TranslationAttentionAsked, given: Any) -> Any:
        source, target = source_and_target(given)
        sides = encode_sides(self.translator.folder, [(source, target)])
        check_tokens(max(len(sides.sources[0]), len(sides.targets[0])))
        return list(sides.sources[0]), list(sides.targets[0])

    def work(self, asked: TranslationAttentionAsked, inputs: Sequence[Any]) -> Work:
        config = self.translator.folder.model.config
        assert isinstance(config, TransformerConfig)  # no other model has this verb
        chosen_of(asked.layers, 1, min(config.encoder_layers, config.decoder_layers), "layer")
        chosen_of(asked.heads, 0, config.heads - 1, "head")

        def told(results: list[TransformerMaps]) -> list[Any]:
            return [
                {
                    "encoder": {"tokens": one.source, "at": one.source, **chosen_weights(one.encoder, asked)},
                    "decoder": {"tokens": one.written, "at": one.given, **chosen_weights(one.decoder, asked)},
                    "cross": {"tokens": one.written, "at": one.source, **chosen_weights(one.cross, asked)},
                }
                for one in results
            ]

        program = TranslationAttentionProgram(self.translator)
        return Work(program, inputs, [len(source) + len(target) for source, target in inputs], told)


def check_tokens(count: int) -> None:
    """Refuse a text whose map would be too large to send."""
    if count > MOST_TOKENS:
        what = f"the text has {count} tokens, and weights are given for at most {MOST_TOKENS}"
        raise HeedfulError(what, remedy="shorten it")


def chosen_weights(weights: Any, asked: ChosenWeights) -> dict[str, Any]:
    """Of weights (L, H, T, S) those that were asked for, with the numbers of their layers and heads."""
    layers = chosen_of(asked.layers, 1, len(weights), "layer")
    heads = chosen_of(asked.heads, 0, weights.shape[1] - 1, "head")
    chosen = weights[[layer - 1 for layer in layers]][:, heads]
    return {"layers": layers, "heads": heads, "weights": chosen.round(5).copy()}


def chosen_of(asked: list[int] | None, first: int, last: int, kind: str) -> list[int]:
    """The numbers that were asked for, or all; one that is not there is refused."""
    chosen = list(range(first, last + 1)) if asked is None else asked
    for number in chosen:
        if not first <= number <= last:
            raise HeedfulError(f"there is no {kind} {number}", remedy=f"the {kind}s are {first} … {last}")
    return chosen
