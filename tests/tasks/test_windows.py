"""Windows over a long text: they leave no gap, fit the room, and a text that fits is one window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import HeedfulError
from heedful.tasks.windows import home, spread


@given(length=st.integers(0, 300), room=st.integers(1, 60), share=st.floats(0.01, 1))
def test_every_token_is_in_a_window_that_fits(length: int, room: int, share: float) -> None:
    windows = spread(length, room, max(1, int(share * room)))
    assert {token for window in windows for token in window} == set(range(length))
    assert all(len(window) <= room for window in windows)
    assert windows[-1].stop == length
    if length <= room:
        assert windows == [range(length)]


@given(length=st.integers(1, 200), room=st.integers(1, 40))
def test_a_token_is_at_home_where_it_sees_most(length: int, room: int) -> None:
    windows = spread(length, room)
    for token in range(length):
        best = windows[home(windows, token)]
        nearest = min(token - best.start, best.stop - 1 - token)
        for window in windows:
            if token in window:
                assert nearest >= min(token - window.start, window.stop - 1 - token)


def test_windows_with_gaps_or_without_room_are_refused() -> None:
    with pytest.raises(HeedfulError, match="gaps"):
        spread(100, 10, 11)
    with pytest.raises(HeedfulError, match="room"):
        spread(100, 0)
    with pytest.raises(HeedfulError, match="a stride of -5"):
        spread(100, 10, -5)
