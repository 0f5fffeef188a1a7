"""Pieces as labels to read: what they spell, and not how the tokenizer writes them."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.text.tokenizer import Tokenizer

# What the library shows for bytes that are no character.
BROKEN = "\ufffd"
MOST_BYTES = 4
SPACE = "␣"


def piece_labels(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """A label for each piece; pieces that only together spell a character are all labelled with it.

    A rare ideograph of a byte-level tokenizer is such a character: 饕 may be three pieces.
    """
    labels: list[str] = []
    while len(labels) < len(ids):
        text, count = _next(tokenizer, ids[len(labels) : len(labels) + MOST_BYTES])
        labels += [text.strip() or SPACE] * count
    return labels


def _next(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, int]:
    """What the first pieces spell, and how many it takes; one if none of these numbers gives a whole character."""
    for count in range(1, len(ids) + 1):
        text: str = tokenizer.library.decode(list(ids[:count]), skip_special_tokens=False)
        if BROKEN not in text:
            return text, count
    return BROKEN, 1
