"""The one way in which a text that is longer than the model is read: in windows that overlap."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.errors import HeedfulError


def spread(length: int, room: int, stride: int = 0) -> list[range]:
    """Windows of at most `room` tokens over `length` tokens, each `stride` tokens further on than the one before.

    The last one ends with the text; without a stride they overlap by half. What fits is a single window.
    """
    if room < 1:
        raise HeedfulError(f"a window has room for {room} tokens", remedy="use a greater max_length")
    if stride < 0:
        raise HeedfulError(f"a stride of {stride}", remedy="use a positive one, or 0 for windows that overlap by half")
    step = stride or max(1, room // 2)
    if step > room:
        raise HeedfulError(
            f"a stride of {step} leaves gaps between windows of {room} tokens", remedy=f"use at most {room}"
        )
    starts = list(range(0, max(length - room, 0), step))
    return [range(start, start + room) for start in starts] + [range(max(length - room, 0), length)]


def home(windows: Sequence[range], token: int) -> int:
    """The number of the window that shows the most on both sides of a token."""
    inside = [number for number, window in enumerate(windows) if token in window]
    return max(inside, key=lambda n: (min(token - windows[n].start, windows[n].stop - 1 - token), -n))
