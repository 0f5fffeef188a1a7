"""Cutting documents into segments: runs of sentences that fill a number of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heedful.data.corpus.corpus import TokenText
from heedful.data.shards import Array


@dataclass(frozen=True)
class Segments:
    """Where each segment starts and stops in the tokens of a text, and which of them each document has."""

    starts: Array
    stops: Array
    documents: Array  # of each segment
    of_document: Array  # document d has segments of_document[d] … of_document[d + 1]

    def __len__(self) -> int:
        return len(self.starts)


def cut_segments(text: TokenText, budget: int, least: int = 1, sentences: int | None = None) -> Segments:
    """Fill segments of up to `budget` tokens with the sentences of one document after another.

    Only a sentence longer than the budget is cut. A last sentence that would be left alone takes the one before it
    along if both fit. With `sentences` a segment is that many of them, whatever their length. Segments of fewer than
    `least` tokens are left out.
    """
    found = list(_rounds(text, budget, sentences))
    starts, stops, owners = (np.concatenate([row[i] for row in found] or [np.empty(0, np.int64)]) for i in range(3))
    order = np.argsort(starts, kind="stable")
    starts, stops, owners = starts[order], stops[order], owners[order]
    starts = _with_company(text, starts, stops, owners, budget)
    long_enough = stops - starts >= least
    starts, stops, owners = starts[long_enough], stops[long_enough], owners[long_enough]
    return Segments(starts, stops, owners, np.searchsorted(owners, np.arange(text.documents + 1)))


def _rounds(text: TokenText, budget: int, sentences: int | None) -> list[tuple[Array, Array, Array]]:
    """All first segments of the documents, all second ones, and so on."""
    owners = np.arange(text.documents)
    positions, ends = text.document_starts[:-1], text.document_starts[1:]
    rounds = []
    while len(owners):
        stops = np.minimum(_stops(text.sentence_starts, positions, budget, sentences), ends)
        rounds.append((positions, stops, owners))
        going_on = stops < ends
        positions, ends, owners = stops[going_on], ends[going_on], owners[going_on]
    return rounds


def _stops(boundaries: Array, positions: Array, budget: int, sentences: int | None) -> Array:
    if sentences is not None:
        number = np.searchsorted(boundaries, positions)
        stops: Array = boundaries[np.minimum(number + sentences, len(boundaries) - 1)]
        return stops
    last = boundaries[np.searchsorted(boundaries, positions + budget, side="right") - 1]
    return np.where(last > positions, last, positions + budget)


def _with_company(text: TokenText, starts: Array, stops: Array, owners: Array, budget: int) -> Array:
    boundaries = text.sentence_starts
    last = stops == text.document_starts[owners + 1]
    one_before = boundaries[np.maximum(np.searchsorted(boundaries, starts) - 1, 0)]
    alone = boundaries[np.searchsorted(boundaries, stops) - 1] <= starts
    fits = (one_before >= text.document_starts[owners]) & (stops - one_before <= budget)
    return np.where(last & alone & fits, one_before, starts)
