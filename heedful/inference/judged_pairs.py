"""Pairs of words or texts that people have judged, beside the cosines of a model's vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heedful.checkpoints.vector_files import Matrix
from heedful.data.labelled.sentence_pairs import SCORES, SIDES
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.tasks.label_metrics import pearson, spearman
from heedful.text.documents import read_lines


class JudgedPair(NamedTuple):
    """Two texts and how alike people find them."""

    first: str
    second: str
    score: float


@dataclass(frozen=True)
class Agreement:
    """How far cosines and judgements go together."""

    spearman: float
    pearson: float
    pairs: int  # that were compared
    left_out: int  # because a side has no vector
    without: tuple[str, ...]  # those sides


def read_pairs(path: str | Path) -> list[JudgedPair]:
    """Two texts and a number a line, separated by tabs; a first line without the number is a header.

    One with names that `finetune embed` knows says where they stand; else they are the first three columns.
    """
    pairs, places = [], (0, 1, 2)
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if not line.strip():
            continue
        if number == 1 and (named := _named(cells)):
            places = named
            continue
        try:
            first, second, score = (cells[place].strip() for place in places)
            pairs.append(JudgedPair(first, second, float(score)))
        except (IndexError, ValueError):
            if number == 1 and len(cells) >= 3:
                continue
            remedy = "write two texts and a number, separated by tabs"
            raise HeedfulError(f"not a judged pair: {line[:60]!r}", where=f"{path}:{number}", remedy=remedy) from None
    if len(pairs) < 2:
        raise HeedfulError("fewer than two pairs", where=path, remedy="give a file with judged pairs")
    return pairs


def _named(header: Sequence[str]) -> tuple[int, int, int] | None:
    """Where the two texts and the score stand, if a header has the names of them."""
    names = [cell.strip().lower() for cell in header]
    sides = next((both for both in SIDES if set(both) <= set(names)), None)
    score = next((name for name in SCORES if name in names), None)
    if sides is None or score is None:
        return None
    return names.index(sides[0]), names.index(sides[1]), names.index(score)


def agreement(pairs: Sequence[JudgedPair], vectors: Callable[[Sequence[str]], Sequence[Matrix | None]]) -> Agreement:
    """Compare the cosines of vectors of length 1 with the judgements; a text that gets None has no vector."""
    texts = list(dict.fromkeys(text for pair in pairs for text in pair[:2]))
    found = dict(zip(texts, vectors(texts), strict=True))
    cosines, scores = [], []
    for first, second, score in pairs:
        a, b = found[first], found[second]
        if a is not None and b is not None:
            cosines.append(float(np.dot(a, b)))
            scores.append(score)
    if len(scores) < 2:
        raise HeedfulError("no two pairs have vectors", remedy="use a model of the language of these pairs")
    without = tuple(text for text in texts if found[text] is None)
    return Agreement(
        spearman(scores, cosines), pearson(scores, cosines), len(scores), len(pairs) - len(scores), without
    )


def text_vectors(
    model: Embedder, texts: Sequence[str], layers: Sequence[int], pooling: str | None, prompt: str | None = None
) -> list[Matrix | None]:
    """The vector of each text, of length 1; None for one of which the model knows no piece."""
    unknown = model.tokenizer.id_of(model.tokenizer.special_tokens.get("unk", ""))
    known = [any(i != unknown for i in pieces.ids) for pieces in model.tokenizer.pieces(texts)]
    fit = [t for t, k in zip(texts, known, strict=True) if k]
    vectors = iter(model.embed(fit, layers, pooling=pooling, normalize=True, prompt=prompt))
    return [next(vectors) if k else None for k in known]
