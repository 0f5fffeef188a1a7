"""Smoothing and thinning."""

from __future__ import annotations

import math
import random

from heedful.views.curves import is_noisy, smooth, thin


def test_only_what_goes_up_and_down_is_noisy() -> None:
    rng = random.Random(0)
    assert is_noisy([rng.random() for _ in range(100)])
    assert not is_noisy([min(i, 200 - i) / 100 for i in range(200)])  # a learning rate
    assert not is_noisy([0.5] * 100) and not is_noisy([1.0, 2.0, 1.0, 2.0]) and not is_noisy([])


def test_smoothing_keeps_ends_gaps_and_level_and_ignores_a_spike() -> None:
    rng = random.Random(1)
    points = [(float(i), 5 + rng.gauss(0, 0.1)) for i in range(1000)]
    points[500], points[700] = (500.0, 1e6), (700.0, math.nan)
    found = dict(smooth(points, most=1000))
    assert list(found) == [x for x, _ in points] and math.isnan(found[700.0])
    assert found[0.0] == points[0][1]
    assert all(abs(y - 5) < 0.12 for x, y in found.items() if x > 40 and math.isfinite(y))


def test_smoothing_takes_no_more_points_than_allowed_and_the_last_one() -> None:
    points = [(float(i), float(i % 2)) for i in range(100_003)]
    found = smooth(points, most=400)
    assert len(found) <= 401 and found[-1][0] == 100_002


def test_thinning_keeps_extremes_gaps_and_the_last_point() -> None:
    points = [(float(i), math.sin(i)) for i in range(10_000)]
    points[5_000] = (5_000.0, 99.0)
    points[2_000:4_000] = [(float(i), math.nan) for i in range(2_000, 4_000)]
    found = thin(points, 400)
    assert len(found) <= 402 and (5_000.0, 99.0) in found and found[-1] == points[-1]
    assert any(math.isnan(y) for _, y in found)
    assert [x for x, _ in found] == sorted(x for x, _ in found)
    assert thin(points[:10], 400) == points[:10]
