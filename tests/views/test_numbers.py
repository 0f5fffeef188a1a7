"""Ticks, labels and durations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.views.numbers import duration, exact, short, ticks


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_enclose_the_range_and_are_few_and_even(low: float, width: float) -> None:
    found = ticks(low, low + width)
    room = 1e-6 * (abs(low) + width)
    assert found[0] <= low + room and found[-1] >= low + width - room
    assert 2 <= len(found) <= 9 and found == sorted(set(found))


def test_ticks_of_a_single_value() -> None:
    assert ticks(5.0, 5.0)[0] < 5 < ticks(5.0, 5.0)[-1]
    assert ticks(0.0, 0.0)[0] < 0 < ticks(0.0, 0.0)[-1]
    assert ticks(0.0, 1e-308)[-1] > 0
    assert ticks(0, 10) == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize(
    ("value", "label"),
    [
        *((0, "0"), (0.30000000000000004, "0.3"), (-2, "-2"), (2000, "2,000"), (40_000, "40k")),
        *((1.5e6, "1.5M"), (3e9, "3G"), (2e-5, "2e-5"), (1.2e-4, "1.2e-4"), (4e15, "4e15")),
    ],
)
def test_short(value: float, label: str) -> None:
    assert short(value) == label


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (3.46449, "3.464"),
        (36_864_000, "36,864,000"),
        (0, "0"),
        (1e-4, "1e-4"),
        (1e300, "1e300"),
        (float("nan"), "not a number"),
    ],
)
def test_exact(value: float, label: str) -> None:
    assert exact(value) == label


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (59.94, "59.9 s"), (250, "4 min 10 s"), (3_900, "1 h 05 min")]
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text
