"""How alike are two sentences, from 0 to 5? Both name the same four towns; what counts is which in which season."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from random import Random
from typing import NamedTuple

from heedful.toy.bag_of_words import correlation, pair_bag, regress
from heedful.toy.patterns import fill_pattern, read
from heedful.toy.task import Task
from heedful.toy.world import TOWNS, Word

SEASONS = ("spring", "summer", "autumn", "winter")
PATTERNS = (
    Word(
        "{name} went to {spring} in spring, to {summer} in summer, to {autumn} in autumn and to {winter} in winter.",
        "{name}去{spring}过春天，去{summer}过夏天，去{autumn}过秋天，去{winter}过冬天。",
    ),
    Word(
        "In spring {name} was in {spring}, in summer in {summer}, in autumn in {autumn} and in winter in {winter}.",
        "春天{name}在{spring}，夏天在{summer}，秋天在{autumn}，冬天在{winter}。",
    ),
)
_ORDERS = tuple(permutations(range(len(SEASONS))))


class ScoredPair(NamedTuple):
    """A row in the layout of STS-B."""

    score: float
    sentence1: str
    sentence2: str
    genre: str = "toy"
    source: str = "seasons"

    @property
    def inputs(self) -> tuple[str, str]:
        return self.sentence1, self.sentence2

    @property
    def answer(self) -> float:
        return self.score


def _score(kept: int) -> float:
    return 5 * kept / len(SEASONS)


def _kept(order: Sequence[int]) -> int:
    return sum(place == i for i, place in enumerate(order))


def group(rng: Random, language: str, names: Sequence[Word]) -> list[ScoredPair]:
    """One first sentence and four second ones, in which 0, 1, 2 and 4 towns kept their season (3 is impossible)."""
    towns, name = rng.sample(TOWNS, len(SEASONS)), rng.choice(names)
    first, second = rng.choice(PATTERNS), rng.choice(PATTERNS)
    said = fill_pattern(first, language, name=name, **dict(zip(SEASONS, towns, strict=True)))
    rows = []
    for kept in (0, 1, 2, 4):
        order = rng.choice([order for order in _ORDERS if _kept(order) == kept])
        moved = {season: towns[place] for season, place in zip(SEASONS, order, strict=True)}
        rows.append(ScoredPair(_score(kept), said, fill_pattern(second, language, name=name, **moved)))
    return rows


def solve(sentence1: str, sentence2: str) -> float:
    """The score of the number of seasons spent in the same town."""
    first, second = read(PATTERNS, sentence1)[1], read(PATTERNS, sentence2)[1]
    return _score(sum(first[season] == second[season] for season in SEASONS))


def baseline(train: Sequence[ScoredPair], dev: Sequence[ScoredPair]) -> float:
    """Correlation of ridge regression over the words of each side and those they share."""
    predicted = regress(
        [pair_bag(*r.inputs) for r in train], [r.score for r in train], [pair_bag(*r.inputs) for r in dev]
    )
    return correlation(predicted, [r.score for r in dev])


TASK = Task("similarity", "tsv", "correlation", 0.0, group, solve, baseline)
