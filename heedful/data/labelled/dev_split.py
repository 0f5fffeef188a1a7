"""Dev data split off the training data: by chance, every label in its share, nothing on both sides."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from random import Random
from typing import Any, TypeVar

from heedful.data.labelled.samples import Sample, sample_of
from heedful.errors import HeedfulError

E = TypeVar("E")
MOST_STRATA = 0.5  # of the examples: with more different labels, such as numbers, these tell nothing of a share
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def share_of(dev: Any) -> float | None:
    """The share that a text such as 10% names; None of anything else, such as a file."""
    found = _SHARE.fullmatch(dev.strip()) if isinstance(dev, str) else None
    if found is None:
        return None
    share = float(found[1]) / 100
    if not 0 < share < 1:
        raise HeedfulError(f"{dev} of the training data for dev", remedy="use a share between 0 % and 100 %, as 10%")
    return share


def split_off(examples: Sequence[E], share: float, seed: int) -> tuple[list[E], list[E]]:
    """What stays to train on, and what is split off, both in their order.

    Examples about the same text, a question's context or a row that is repeated, go to the same side. Of each label so
    many groups are taken as its share says.
    """
    rng = Random(seed)
    chosen: set[int] = set()
    owed = 0.0  # what rounding has left over of earlier labels
    for groups in _strata(examples):
        rng.shuffle(groups)
        owed += share * sum(map(len, groups))
        for group in groups:
            if len(group) / 2 > owed:
                break
            chosen.update(group)
            owed -= len(group)
    if not 0 < len(chosen) < len(examples):
        apart = sum(map(len, _strata(examples)))
        together = f" ({apart:,} without repeats, which stay together)" if apart < len(examples) else ""
        what = f"{share:.0%} of {len(examples):,} examples{together} leave nothing for one of the two sides"
        raise HeedfulError(what, remedy="use another share, more examples, or a file of dev data")
    kept = [example for number, example in enumerate(examples) if number not in chosen]
    return kept, [examples[number] for number in sorted(chosen)]


def _strata(examples: Sequence[Any]) -> list[list[list[int]]]:
    """The examples by number, in groups that stay together, groups of the same label beside each other."""
    samples = [_sample(example) for example in examples]
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for number, sample in enumerate(samples):
        groups[number if sample is None else sample.passage or sample.key].append(number)
    strata: dict[Hashable, list[list[int]]] = defaultdict(list)
    for group in groups.values():
        first = samples[group[0]]
        strata[None if first is None or first.passage else first.counted].append(group)
    if len(strata) > MOST_STRATA * len(groups):
        return [list(groups.values())]
    return list(strata.values())


def _sample(example: Any) -> Sample | None:
    """An example as any task has it; None of one that only its own task knows."""
    try:
        return sample_of(example)
    except TypeError:
        return None
