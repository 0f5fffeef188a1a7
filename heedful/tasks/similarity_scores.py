"""How good sentence vectors are: correlation with given scores, finding the right text among others, and their spread.

alignment   = mean ‖x - x⁺‖² over pairs that mean the same (of scored ones those from 0.8 of the scale on)
uniformity  = log mean exp(-2 ‖x - y‖²) over different texts; less of either is better (Wang and Isola)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.tasks.label_metrics import pearson, spearman

SAME_MEANING = 0.8
RANKS = (1, 5, 10)
MOST = 2000  # so many texts tell how evenly the vectors are spread

Floats = NDArray[np.float64]
Chosen = NDArray[np.int64]


class Scored(NamedTuple):
    """The texts of a row (the second means the same as the first, the others do not), its score, and unit vectors."""

    texts: tuple[str, ...]
    score: float | None
    vectors: NDArray[np.float32]


def rescorer(rows: Sequence[Scored]) -> Callable[[Chosen], Mapping[str, float]]:
    """The scores of any choice of the rows; what is asked of each row is found out once."""
    uniform, parts = _uniformity(rows), _by_row(rows)

    def rescored(chosen: Chosen) -> dict[str, float]:
        found: dict[str, float] = {}
        if "score" in parts:
            both = parts["cosine"][chosen], parts["score"][chosen]
            found |= {"spearman": spearman(*both), "pearson": pearson(*both)}
        if "rank" in parts:
            ranks = parts["rank"][chosen]
            found |= {"mrr": float(np.mean(1 / ranks))}
            found |= {f"recall@{most}": float(np.mean(ranks <= most)) for most in RANKS}
        if "apart" in parts:
            apart = parts["apart"][chosen]
            found["alignment"] = float(np.nanmean(apart)) if np.isfinite(apart).any() else math.nan
        return {**found, "uniformity": uniform(chosen)}

    return rescored


def _by_row(rows: Sequence[Scored]) -> dict[str, Floats]:
    """What is known of each row that has a pair."""
    if any(len(row.texts) < 2 for row in rows):
        return {}
    cosines = np.array([row.vectors[0] @ row.vectors[1] for row in rows], dtype=np.float64)
    apart = 2 - 2 * cosines
    if all(row.score is not None for row in rows):
        scores = np.array([row.score for row in rows], dtype=np.float64)
        top = next((top for top in (1, 5, 10, 100) if scores.max() <= top), scores.max())
        return {"cosine": cosines, "score": scores, "apart": np.where(scores >= SAME_MEANING * top, apart, np.nan)}
    return {"rank": ranks_of(rows), "apart": apart}


def ranks_of(rows: Sequence[Scored]) -> Floats:
    """The place of the best right text among all different second texts and negatives, by the cosine, from 1 on.

    Right for a text is every second text that stands beside it somewhere; the text itself is no candidate.
    """
    vectors = {text: row.vectors[place] for row in rows for place, text in enumerate(row.texts) if place}
    numbers = {text: number for number, text in enumerate(vectors)}
    right: dict[str, set[int]] = {}
    for row in rows:
        right.setdefault(row.texts[0], set()).add(numbers[row.texts[1]])
    matrix = np.stack(list(vectors.values()))
    return np.array([_rank(row, matrix, sorted(right[row.texts[0]]), numbers) for row in rows], dtype=np.float64)


def _rank(row: Scored, matrix: NDArray[np.float32], right: Sequence[int], numbers: Mapping[str, int]) -> int:
    cosines = matrix @ row.vectors[0]
    itself = numbers.get(row.texts[0])
    if itself is not None and itself not in right:
        cosines[itself] = -np.inf
    best = cosines[right].max()
    cosines[right] = -np.inf
    return 1 + int((cosines >= best).sum())  # of equal ones the wrong come first, lest vectors all alike find all


def _uniformity(rows: Sequence[Scored]) -> Callable[[Chosen], float]:
    some = rows[:MOST]
    vectors = np.stack([row.vectors[0] for row in some]).astype(np.float64)
    names = np.unique([row.texts[0] for row in some], return_inverse=True)[1]
    different = (names[:, None] != names).astype(np.float64)
    kernel = np.exp(4 * (vectors @ vectors.T) - 4) * different

    def uniformity(chosen: Chosen) -> float:
        times = np.bincount(chosen[chosen < len(some)], minlength=len(some)).astype(np.float64)
        pairs = times @ different @ times
        return math.log((times @ kernel @ times) / pairs) if pairs else math.nan

    return uniformity
