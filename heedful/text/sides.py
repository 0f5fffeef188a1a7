"""The tokenizers of a translation model: one for both sides, or one for each, and what its decoder says and never says.

A text is `[CLS] … [SEP]` on both sides: [CLS] is the symbol a decoder starts with, [SEP] the one it ends with.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_training import train

NEVER_SAID = ("pad", "cls", "mask")


class Sides(NamedTuple):
    """The tokenizers of source and target."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        """Whether one vocabulary serves both sides."""
        return self.source is self.target


class Symbols(NamedTuple):
    """The ids a decoder starts with, ends with, and must never say."""

    start: int
    end: int
    banned: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Symbols:
        """Those of the target side's tokenizer."""
        pieces = (tokenizer.special_tokens.get(role, "") for role in NEVER_SAID)
        banned = (number for piece in pieces if (number := tokenizer.id_of(piece)) is not None)
        return cls(tokenizer.cls_id, tokenizer.sep_id, tuple(banned))


def learn_sides(sources: Iterable[str], targets: Iterable[str], vocab_size: int, *, separate: bool = False) -> Sides:
    """Byte-level BPE that keeps case, so that every text can be said: of both sides together, or one of each."""
    if separate:
        return Sides(
            train(sources, "bpe", vocab_size, cased=True),
            train(targets, "bpe", vocab_size, cased=True),
        )
    joint = train(chain(sources, targets), "bpe", vocab_size, cased=True)
    return Sides(joint, joint)
