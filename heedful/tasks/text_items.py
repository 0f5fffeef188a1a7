"""Texts and pairs as items of which the row that sums them up is looked at, for classification and regression."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from heedful.data.labelled.dataset import Columns, Dataset, TextRow
from heedful.data.labelled.text_rows import read_text_rows
from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder
from heedful.models.heads import SequenceClassifier, Summary
from heedful.tasks.task import Item, Task, Window
from heedful.tasks.windows import spread
from heedful.text.frame import Frame
from heedful.text.rows import DataSource
from heedful.text.tokenizer import Tokenizer, was_truncated


@dataclass(frozen=True)
class TextTask(Task[TextRow]):
    """A task about texts or pairs of texts, from the state that sums them up."""

    layouts: ClassVar[tuple[tuple[str, ...], ...]] = (("text",), ("text", "label"), ("text", "pair", "label"))

    features: tuple[int, ...] = ()  # layers of a frozen encoder to look at, instead of training it
    pooling: Summary = "cls"  # what sums a text up: a row of the encoder's own, all tokens, or both sides compared

    @property
    def architecture(self) -> str | None:  # type: ignore[override]
        """Hugging Face has such a class for the encoder's own summary of the last layer only."""
        return "SequenceClassification" if self.pooling == "cls" and not self.features else None

    def classifier(self, encoder: Encoder, outputs: int) -> SequenceClassifier:
        """So many numbers from what sums a text up."""
        return SequenceClassifier(encoder, outputs, self.features, self.pooling)

    def items(
        self, rows: Sequence[TextRow], tokenizer: Tokenizer, target: Callable[[TextRow], tuple[float, ...]]
    ) -> list[Item]:
        """One item a row, or with a stride one for each window."""
        if self.pooling == "compare" and not _are_pairs(rows):
            where = rows[0].where or None if rows else None
            raise HeedfulError(
                "there is no second text to compare with", where=where, remedy="choose cls or mean as `pooling`"
            )
        return text_items(rows, tokenizer, self.max_length, self.stride, target)

    @classmethod
    def read(cls, path: DataSource, columns: Columns, labelled: bool = True) -> Dataset[TextRow]:
        """Rows of a table or JSON-lines file."""
        return read_text_rows(path, columns, labelled)

    @classmethod
    def example(cls, given: Any) -> TextRow:
        """A text, a pair of texts, or a mapping with `text` and perhaps `pair`."""
        return row_of(given)


def text_items(
    rows: Sequence[TextRow],
    tokenizer: Tokenizer,
    max_length: int,
    stride: int,
    target: Callable[[TextRow], tuple[float, ...]],
) -> list[Item]:
    """One item a row, what is too long cut off; with a `stride`, as many as it takes to read all of it."""
    pairs = _are_pairs(rows)
    if stride:
        return [
            Item(number, (window,), target(row), cut=cut)
            for number, row in enumerate(rows)
            for window, cut in _windows(row, tokenizer, max_length, stride)
        ]
    texts: Any = [(row.text, row.pair) for row in rows] if pairs else [row.text for row in rows]
    encodings = tokenizer.encode_batch(texts, max_length, offsets=False)
    return [
        Item(number, (summed_up(encoding.ids, encoding.type_ids, tokenizer),), target(row), cut=was_truncated(encoding))
        for number, (row, encoding) in enumerate(zip(rows, encodings, strict=True))
    ]


def summed_up(ids: list[int], segments: list[int], tokenizer: Tokenizer) -> Window:
    """A window of which only the row that sums it up is looked at."""
    ids, segments = tokenizer.frame.some(ids), segments or [0]
    return Window(ids, segments, [tokenizer.frame.summary_row(len(ids))])


def mean_outputs(examples: int, items: Sequence[Item], outputs: Sequence[Sequence[Tensor]]) -> Tensor:
    """The mean over the windows of each example, (examples, K): a text in one window keeps its outputs as they are."""
    totals = torch.zeros(examples, outputs[0][0].shape[-1])
    counts = torch.zeros(examples, 1)
    for item, windows in zip(items, outputs, strict=True):
        totals[item.example] += windows[0][0]
        counts[item.example] += 1
    return totals / counts


def row_of(given: Any) -> TextRow:
    """A row from a text, a pair of texts, or a mapping with `text` and perhaps `pair`."""
    if isinstance(given, TextRow):
        return given
    if isinstance(given, str):
        return TextRow(given)
    if isinstance(given, Mapping) and isinstance(given.get("text"), str):
        return TextRow(given["text"], given.get("pair"))
    if isinstance(given, Sequence) and len(given) == 2 and all(isinstance(side, str) for side in given):
        return TextRow(given[0], given[1])
    what = f"an input of type {type(given).__name__} is not understood"
    raise HeedfulError(what, remedy='give a text, a pair of texts, or {"text": …, "pair": …}')


def first_side(first: list[int], second: int, max_length: int, frame: Frame) -> list[int]:
    """The first side of a pair in front of windows over `second` tokens: whole if both fit, else half a window of it.

    Where the second side is short, the first has all the room that it leaves.
    """
    return first[: max(max_length // 2, max_length - frame.pair.size - second)]


def _are_pairs(rows: Sequence[TextRow]) -> bool:
    pairs = [row.pair is not None for row in rows]
    if any(pairs) and not all(pairs):
        odd = rows[pairs.index(not pairs[0])]
        raise HeedfulError(
            "some inputs are pairs of texts and others are not", where=odd.where or None, remedy="give one kind"
        )
    return any(pairs)


def _windows(row: TextRow, tokenizer: Tokenizer, max_length: int, stride: int) -> Iterator[tuple[Window, bool]]:
    """All of a text in windows, or of the second text of a pair, each with the first before it; and is that cut?"""
    frame = tokenizer.frame
    moving = tokenizer.pieces([row.text if row.pair is None else row.pair])[0].ids
    whole = [] if row.pair is None else tokenizer.pieces([row.text])[0].ids
    first = first_side(whole, len(moving), max_length, frame)
    room = max_length - (frame.single.size if row.pair is None else frame.pair.size + len(first))
    for window in spread(len(moving), room, min(stride, room)):
        part = moving[window.start : window.stop]
        joined = frame.joined(part) if row.pair is None else frame.joined(first, part)
        yield summed_up(*joined, tokenizer), len(first) < len(whole)
