"""What stands around a text before a model reads it: `[CLS] text [SEP]` for one model, `text <sep> <cls>` for another.

The frame is read off the tokenizer's own post-processor, so that pieces joined here and texts encoded as a whole are
the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple

import tokenizers
from tokenizers import Encoding

# The row whose state sums a text up: the first one for BERT, the last one for a model that reads from left to right.
SummaryRow = Literal["first", "last"]


class Run(NamedTuple):
    """Special tokens in a row, and their segments."""

    ids: tuple[int, ...] = ()
    segments: tuple[int, ...] = ()


@dataclass(frozen=True)
class Template:
    """The special tokens around one text or two, and the segments of the texts."""

    before: Run
    between: Run
    after: Run
    sides: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many special tokens there are."""
        return len(self.before.ids) + len(self.between.ids) + len(self.after.ids)


@dataclass(frozen=True)
class Frame:
    """How texts and pairs are joined, and which row of the result sums it up.

    `nothing` is the token that a model reads where there would be none: a blank text, and no special token around it.
    """

    single: Template
    pair: Template
    summary: SummaryRow = "first"
    nothing: int = 0

    @classmethod
    def of(cls, library: tokenizers.Tokenizer, summary: SummaryRow = "first", nothing: int = 0) -> Frame:
        """The frame that a tokenizer puts around texts."""
        text = _some_text(library)
        return cls(_template(library.encode(text)), _template(library.encode(text, text)), summary, nothing)

    def joined(self, first: Sequence[int], second: Sequence[int] | None = None) -> tuple[list[int], list[int]]:
        """The pieces of one text or two with what stands around them, as ids and segments."""
        frame = self.single if second is None else self.pair
        ids = [*frame.before.ids, *first]
        segments = [*frame.before.segments, *[frame.sides[0]] * len(first)]
        if second is not None:
            ids += [*frame.between.ids, *second]
            segments += [*frame.between.segments, *[frame.sides[1]] * len(second)]
        return self.some([*ids, *frame.after.ids]), [*segments, *frame.after.segments] or [0]

    def some(self, ids: list[int]) -> list[int]:
        """The ids, or the one that is read where there is nothing."""
        return ids or [self.nothing]

    def second_starts(self, first: int) -> int:
        """Where the second text of a pair begins after a first one of so many pieces."""
        return len(self.pair.before.ids) + first + len(self.pair.between.ids)

    def summary_row(self, length: int) -> int:
        """The row that sums up a sequence of so many tokens."""
        return 0 if self.summary == "first" else length - 1


def _some_text(library: tokenizers.Tokenizer) -> str:
    """A text of at least one piece: what stands around nothing would not tell which side is which."""
    texts = library.get_vocab()
    return next((text for text in texts if len(library.encode(text, add_special_tokens=False))), "")


def _template(whole: Encoding) -> Template:
    """The runs of special tokens, which belong to no side, before, between and after those that do."""
    tokens = zip(whole.sequence_ids, whole.ids, whole.type_ids, strict=True)
    runs = [(side, list(run)) for side, run in groupby(tokens, key=lambda token: token[0])]
    sides = [number for number, (side, _) in enumerate(runs) if side is not None]
    first, last = (sides[0], sides[-1]) if sides else (len(runs), len(runs))

    def special(start: int, stop: int) -> Run:
        some = [token for side, run in runs[start:stop] if side is None for token in run]
        return Run(tuple(number for _, number, _ in some), tuple(segment for _, _, segment in some))

    segments = tuple(runs[number][1][0][2] for number in sides) or (0, 0)
    return Template(special(0, first), special(first, last), special(last, len(runs)), segments)
