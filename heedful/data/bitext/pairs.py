"""Sentence pairs as tokens: encoded, the unusable ones left out, and laid out as what a model is trained on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import torch

from heedful.data.batching import flat_batch
from heedful.data.bitext.reading import SentencePair
from heedful.data.labelled.dataset import Remark
from heedful.data.oddities import Oddities
from heedful.data.shards import Array
from heedful.errors import HeedfulError
from heedful.schema import Bitext
from heedful.text.sides import Sides
from heedful.text.tokenizer import Tokenizer

ENCODED_AT_ONCE = 10_000


@dataclass(frozen=True)
class Limits:
    """Which pairs are unusable: those with a side too long, or with one side so many times as long as the other."""

    max_length: int = 128  # tokens of a side, [CLS] and [SEP] included
    max_ratio: float = 9.0

    def __post_init__(self) -> None:
        if self.max_length < 3:
            raise HeedfulError(f"max_length {self.max_length} leaves no room for text", remedy="use at least 3 tokens")
        if not self.max_ratio >= 1:
            raise HeedfulError(f"a ratio of {self.max_ratio:g}", remedy="use 1 or more; inf keeps all pairs")


@dataclass(frozen=True)
class TokenRows:
    """Token sequences in one array, which takes a tenth of the memory of lists."""

    ids: Array  # (N,)
    starts: Array  # where each sequence begins, and where the last one ends

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> TokenRows:
        """The sequences one after the other."""
        ends = np.cumsum([0, *map(len, sequences)], dtype=np.int64)
        return cls(np.fromiter(chain.from_iterable(sequences), np.int32, count=int(ends[-1])), ends)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> list[int]:
        ids: list[int] = self.ids[self.starts[number] : self.starts[number + 1]].tolist()
        return ids

    @cached_property
    def lengths(self) -> Array:
        """The length of each sequence."""
        return np.diff(self.starts)


@dataclass(frozen=True)
class EncodedPairs:
    """Sources and targets as [CLS] … [SEP], the same number of both."""

    source: TokenRows
    target: TokenRows

    def __len__(self) -> int:
        return len(self.source)

    @cached_property
    def tokens(self) -> Array:
        """What each pair has for the encoder and the decoder to see: the last target token is only said."""
        tokens: Array = self.source.lengths + self.target.lengths - 1
        return tokens


def encode_pairs(
    pairs: Sequence[SentencePair], sides: Sides, limits: Limits
) -> tuple[EncodedPairs, tuple[Remark, ...]]:
    """The pairs that can be learned from, in their order, and what was left out."""
    oddities = Oddities()
    chunks = (pairs[i : i + ENCODED_AT_ONCE] for i in range(0, len(pairs), ENCODED_AT_ONCE))
    found = [_rows(_kept(chunk, sides, limits, oddities)) for chunk in chunks]
    joined = EncodedPairs(_joined([pair.source for pair in found]), _joined([pair.target for pair in found]))
    if not len(joined):
        remarks = "; ".join(map(str, oddities.remarks))
        raise HeedfulError(f"no pair is left: {remarks}", remedy="look at the pairs, or use a greater `max_length`")
    return joined, oddities.remarks


def bitext_of(pairs: EncodedPairs, numbers: Sequence[int]) -> Bitext:
    """Some of the pairs, the longest first."""
    source, target = pairs.source.lengths, pairs.target.lengths
    order = sorted(numbers, key=lambda i: (-source[i], -target[i]))
    return lay_out([pairs.source[i] for i in order], [pairs.target[i] for i in order])


def lay_out(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Bitext:
    """Pairs of [CLS] … [SEP] in the order in which they are given, which should be the longest first."""
    return Bitext(
        source=flat_batch(sources),
        target=flat_batch([ids[:-1] for ids in targets]),
        labels=torch.tensor([label for ids in targets for label in ids[1:]], dtype=torch.long),
    )


_Ids = tuple[list[int], list[int]]


def _kept(pairs: Sequence[SentencePair], sides: Sides, limits: Limits, oddities: Oddities) -> Iterator[_Ids]:
    sources = sides.source.encode_batch([pair.source for pair in pairs], offsets=False)
    targets = sides.target.encode_batch([pair.target for pair in pairs], offsets=False)
    special = [frozenset(_special_ids(tokenizer)) for tokenizer in sides]
    for pair, source, target in zip(pairs, sources, targets, strict=True):
        ids = source.ids, target.ids
        reason = _unusable(ids, special, limits)
        if reason is None:
            yield ids
        else:
            oddities.note(reason, pair.where)


def _unusable(ids: _Ids, special: Sequence[frozenset[int]], limits: Limits) -> str | None:
    """Why a pair cannot be learned from, if it cannot."""
    shorter, longer = sorted(map(len, ids))
    if longer > limits.max_length:
        return f"pairs with a side of more than {limits.max_length} tokens, left out"
    if longer > limits.max_ratio * shorter:
        return f"pairs with one side more than {limits.max_ratio:g} times as long as the other, left out"
    if any(symbols.intersection(side[1:-1]) for symbols, side in zip(special, ids, strict=True)):
        return "pairs with a special token such as [SEP] in their text, left out"
    return None


def _special_ids(tokenizer: Tokenizer) -> Iterable[int]:
    """The symbols that would mean something else inside a text; what is unknown may stand there."""
    pieces = (piece for role, piece in tokenizer.special_tokens.items() if role != "unk")
    return (number for piece in pieces if (number := tokenizer.id_of(piece)) is not None)


def _rows(pairs: Iterable[_Ids]) -> EncodedPairs:
    kept = list(pairs)
    return EncodedPairs(*(TokenRows.of([ids[side] for ids in kept]) for side in (0, 1)))


def _joined(parts: Sequence[TokenRows]) -> TokenRows:
    ends = np.cumsum(np.concatenate([part.lengths for part in parts]))
    return TokenRows(np.concatenate([part.ids for part in parts]), np.concatenate([[0], ends]))
