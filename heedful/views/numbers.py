"""Numbers for people: ticks at round places, short labels, durations."""

from __future__ import annotations

import math

# Differences below this are none: floats have no room left to divide them.
SMALLEST = 1e-290


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers, 1, 2 or 5 times a power of ten apart, that enclose low … high."""
    size = max(abs(low), abs(high))
    if high - low <= max(1e-12 * size, SMALLEST):
        room = 0.1 * size if size > SMALLEST else 1.0
        low, high = low - room, high + room
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    spacing = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / spacing + 1e-9), math.ceil(high / spacing - 1e-9)
    return [number * spacing for number in range(first, last + 1)]


def short(value: float) -> str:
    """The label of a tick: 0.25, 12, 40k, 1.5M, 2e-4."""
    size = abs(value)
    if size < 1e-12:
        return "0"
    if size < 1e-3 or size >= 1e12:
        return _scientific(value)
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            return f"{value / (1e3 if letter == 'k' else limit):.4g}{letter}"
    return f"{value:.5g}" if size < 1000 else f"{value:,.0f}"


def exact(value: float) -> str:
    """A value to be read: four digits, and every digit of a whole number that is not enormous."""
    size = abs(value)
    if not math.isfinite(value):
        return "not a number"
    if size >= 1e12 or 0 < size < 1e-3:
        return _scientific(value)
    return f"{value:,.0f}" if size >= 1000 or value == int(value) else f"{value:.4g}"


def duration(seconds: float) -> str:
    """1 h 05 min, 4 min 10 s, 12.3 s."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60:,} h {minutes % 60:02} min"


def _scientific(value: float) -> str:
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"
