"""The most probable words for every [MASK] of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Encoding
from torch import Tensor

from heedful.errors import HeedfulError
from heedful.inference.masked_lm import MaskedLm
from heedful.models.encoder import check_room
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Guess:
    """A piece of the vocabulary for a hidden place."""

    word: str  # as text; a piece that continues a word keeps its mark, as in ##ing
    id: int
    probability: float


@dataclass(frozen=True)
class Blank:
    """A [MASK] and what may stand there, the most probable first."""

    position: int  # of the token, [CLS] being 0
    guesses: tuple[Guess, ...]


@dataclass(frozen=True)
class TextWithBlanks:
    """A text as ids, and the places of its masks."""

    ids: list[int]
    segments: list[int]
    places: list[int]


def fill_mask(lm: MaskedLm, text: str, pair: str | None = None, top: int = 5) -> list[Blank]:
    """The `top` guesses for each [MASK] in `text` (and `pair`), in order; each is guessed without knowing the others.

    The probabilities are over the whole vocabulary, special tokens included.
    """
    return fill_blanks(lm, [text_with_blanks(lm, text, pair)], top)[0]


def text_with_blanks(lm: MaskedLm, text: str, pair: str | None = None) -> TextWithBlanks:
    """A text, or two, ready to be filled; one without a mask is refused."""
    encoding = lm.tokenizer.encode(text, pair)
    places = [place for place, token in enumerate(encoding.ids) if token == lm.tokenizer.mask_id]
    _check(lm, encoding, places)
    return TextWithBlanks(encoding.ids, encoding.type_ids, places)


def fill_blanks(lm: MaskedLm, texts: Sequence[TextWithBlanks], top: int) -> list[list[Blank]]:
    """The guesses for each mask of each text, in one batch."""
    if top < 1:
        raise HeedfulError(f"top is {top}", remedy="ask for at least one guess")
    sequences, segments = [text.ids for text in texts], [text.segments for text in texts]
    rows = iter(lm.log_probabilities(sequences, [text.places for text in texts], segments).exp())
    return [[Blank(place, _best(next(rows), lm.tokenizer, top)) for place in text.places] for text in texts]


def _best(probabilities: Tensor, tokenizer: Tokenizer, top: int) -> tuple[Guess, ...]:
    named = probabilities[: tokenizer.vocab_size]  # a model may have more rows than there are pieces
    values, ids = named.topk(min(top, len(named)))
    pairs = zip(ids.tolist(), values.tolist(), strict=True)
    return tuple(Guess(_word(tokenizer, number), number, value) for number, value in pairs)


def _word(tokenizer: Tokenizer, number: int) -> str:
    return tokenizer.decode([number]).strip() or tokenizer.vocabulary[number]


def _check(lm: MaskedLm, encoding: Encoding, places: list[int]) -> None:
    if not places:
        mask = lm.tokenizer.special_tokens["mask"]
        raise HeedfulError(f"there is no {mask} in the text", remedy=f"put {mask} where a word is to be guessed")
    remedy = f"shorten it to {lm.positions} tokens, of which [CLS] and [SEP] are part"
    check_room(f"the text has {len(encoding)} tokens,", len(encoding), lm.positions, remedy=remedy)
    segments = lm.encoder.config.segments
    if segments is not None and max(encoding.type_ids) >= segments:
        raise HeedfulError("this model knows no second text", remedy="leave the pair out")
