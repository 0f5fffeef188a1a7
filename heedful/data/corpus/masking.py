"""Which tokens are hidden, and behind what: 15 % of them, 80 % by [MASK], 10 % by another token, 10 % not at all.

Tokens are hidden in units: single tokens, whole words, or the phrases of a lexicon. What stands in a token's place is
drawn for each token by itself, so 80/10/10 holds for tokens whatever the unit, as in BERT-wwm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from heedful.data.chance import below, hashed, uniform
from heedful.data.shards import Array
from heedful.text.tokenizer import Tokenizer

Masking = Literal["token", "word", "phrase"]
MASKINGS: tuple[Masking, ...] = ("token", "word", "phrase")

_UNIT, _ROUNDING, _DISGUISE, _REPLACEMENT = range(20, 24)
# So many bits of a unit's random number decide about its turn; the bits above hold its sequence.
_TURN_BITS = np.uint64(40)


@dataclass(frozen=True)
class Maskable:
    """What a vocabulary says about hiding: the id of [MASK], which ids may be hidden, and which may stand in."""

    mask_id: int
    hideable: Array  # (V,) of bool: all but special tokens
    substitutes: Array  # ids that a masked token may be replaced with

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Maskable:
        """Special tokens, [UNK] among them, are neither hidden nor substitutes."""
        hideable = text_pieces(tokenizer)
        return cls(tokenizer.mask_id, hideable, np.flatnonzero(hideable))


def text_pieces(tokenizer: Tokenizer) -> Array:
    """Which ids are pieces of text and no special tokens, (V,) of bool."""
    found = np.array([bool(piece) for piece in tokenizer.vocabulary])
    specials = [tokenizer.id_of(token) for token in tokenizer.special_tokens.values()]
    found[[number for number in specials if number is not None]] = False
    return found


def choose_masked(
    ids: Array, unit_starts: Array, sequences: Array, positions: Array, numbers: Array, rules: Maskable, seed: int,
    rate: float = 0.15,
) -> Array:  # fmt: skip
    """The flat places of the tokens to predict, in order: about `rate` of those that may be hidden, at least one.

    `ids` are N flat tokens; `unit_starts` flags those that begin a unit; `sequences` and `positions` say where each
    token stands and `numbers` which example each sequence is.
    """
    hideable = rules.hideable[ids]
    # A special token ends a unit even if the corpus did not say so.
    starts = (unit_starts.astype(bool) | ~hideable) | (positions == 0)
    unit = np.cumsum(starts) - 1
    sizes = np.bincount(unit, weights=hideable).astype(np.int64)
    first = np.flatnonzero(starts)
    owner, number = sequences[first], numbers[sequences[first]]
    turn = hashed(seed, _UNIT, number, positions[first]) >> (np.uint64(64) - _TURN_BITS)
    order = np.argsort(owner.astype(np.uint64) << _TURN_BITS | turn)
    order = order[sizes[order] > 0]
    wanted = rate * np.bincount(sequences, weights=hideable, minlength=len(numbers))
    wanted += uniform(seed, _ROUNDING, numbers) - 0.5
    chosen = np.zeros(len(first), bool)
    chosen[order[_within(sizes[order], owner[order], wanted)]] = True
    return np.flatnonzero(chosen[unit] & hideable)


def _within(sizes: Array, owners: Array, wanted: Array) -> Array:
    """Which units, taken in turn within each owner, have their middle before the wanted number of tokens.

    Measured at the middle, a unit that overlaps the end is in as often as it is out: the rate has no bias.
    """
    before = np.cumsum(sizes) - sizes
    new_owner = np.diff(owners, prepend=-1) > 0
    before = before - np.maximum.accumulate(np.where(new_owner, before, 0))
    inside: Array = (before + sizes / 2 <= wanted[owners]) | new_owner
    return inside


def disguise(ids: Array, masked: Array, positions: Array, numbers: Array, rules: Maskable, seed: int) -> Array:
    """A copy of `ids` in which each masked place holds [MASK] (80 %), a random token (10 %) or what it did (10 %).

    `positions` and `numbers` give each masked place its position in its sequence and its example.
    """
    dice = uniform(seed, _DISGUISE, numbers, positions)
    other = rules.substitutes[below(len(rules.substitutes), seed, _REPLACEMENT, numbers, positions)]
    result = ids.copy()
    result[masked] = np.where(dice < 0.8, rules.mask_id, np.where(dice < 0.9, other, ids[masked]))
    return result
