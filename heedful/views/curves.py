"""A series made fit for drawing: smoothed where it is noisy, and thinned to what a screen can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

Point = tuple[float, float]

# A curve of fewer points is shown as it is.
FEWEST_TO_SMOOTH = 20
SHARE_OF_WINDOW = 0.04


def is_noisy(values: Sequence[float]) -> bool:
    """Whether a curve goes up and down too often for the eye to follow."""
    finite = [value for value in values if math.isfinite(value)]
    rises = [after - before for before, after in pairwise(finite)]
    turns = sum(one * two < 0 for one, two in pairwise(rises))
    return len(finite) >= FEWEST_TO_SMOOTH and turns > 0.25 * len(finite)


def smooth(points: Sequence[Point], most: int) -> list[Point]:
    """At most `most` of the points, each with the median of a few percent of the values around it; gaps stay gaps.

    A median, because a mean makes a plateau of a single spike. At the start, where a loss falls steeply, the window
    is narrow and even; at the end it reaches back only.
    """
    half = max(1, round(len(points) * SHARE_OF_WINDOW / 2))
    stride = math.ceil(len(points) / most)
    places = [*range(0, len(points) - 1, stride), len(points) - 1]
    return [(points[place][0], _median_around(points, place, min(half, place))) for place in places]


def _median_around(points: Sequence[Point], place: int, reach: int) -> float:
    if not math.isfinite(points[place][1]):
        return math.nan
    return median(y for _, y in points[place - reach : place + reach + 1] if math.isfinite(y))


def thin(points: Sequence[Point], most: int) -> list[Point]:
    """At most about `most` points that keep the outline: of every stretch its lowest and highest, and gaps, stay."""
    if len(points) <= most:
        return list(points)
    size = math.ceil(2 * len(points) / most)
    kept: list[Point] = []
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        finite = [i for i, (_, y) in enumerate(stretch) if math.isfinite(y)]
        chosen = {min(finite, key=lambda i: stretch[i][1]), max(finite, key=lambda i: stretch[i][1])} if finite else {0}
        kept += [stretch[i] for i in sorted(chosen)]
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]
