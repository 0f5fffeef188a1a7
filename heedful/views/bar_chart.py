"""Bars that lie one below the other, each with its name and its value, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from heedful.views.markup import markup
from heedful.views.svg import WIDTH, colour, text_width

ROW, THICK, GAP = 30, 18, 10


class Bar(NamedTuple):
    """A value under a name; `number` chooses its colour, and `spread` is drawn as a line to both sides of its end."""

    name: str
    number: int
    value: float
    told: str
    spread: float | None = None


def bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """A chart of values from zero on; what is below zero grows to the left of it."""
    finite = [bar for bar in bars if math.isfinite(bar.value)]
    if not finite:
        return f'<p class="none">{markup(title)}: no values</p>'
    left = GAP + max(text_width(bar.name) for bar in finite)
    right = WIDTH - GAP - max(text_width(bar.told) for bar in finite)
    low = min(0.0, *(bar.value - (bar.spread or 0) for bar in finite), 0.0)
    high = max(0.0, *(bar.value + (bar.spread or 0) for bar in finite), 0.0)
    scale = (right - left) / ((high - low) or 1.0)
    drawn = [_bar(bar, row, left - low * scale, scale, left) for row, bar in enumerate(finite)]
    label = f"{title}. " + "; ".join(f"{bar.name}: {bar.told}" for bar in finite)
    size = f"0 0 {WIDTH} {ROW * len(finite)}"
    return f'<svg viewBox="{size}" role="img" aria-label="{markup(label)}">{"".join(drawn)}</svg>'


def _bar(bar: Bar, row: int, zero: float, scale: float, left: float) -> str:
    top, end = row * ROW + (ROW - THICK) / 2, zero + bar.value * scale
    middle = top + THICK / 2
    start, width = min(zero, end), max(abs(end - zero), 1.0)
    reach = (bar.spread or 0.0) * scale
    line = f'<path class="bar-spread" d="M{end - reach:.1f} {middle:.1f}h{2 * reach:.1f}"/>' if reach else ""
    return (
        f'<g class="{colour(bar.number)} part"><title>{markup(f"{bar.name}: {bar.told}")}</title>'
        f'<rect x="{start:.1f}" y="{top:.1f}" width="{width:.1f}" height="{THICK}" rx="3"/></g>{line}'
        f'<text class="tick" x="{left - GAP:.1f}" y="{middle + 4:.1f}" text-anchor="end">{markup(bar.name)}</text>'
        f'<text x="{max(end, zero) + reach + 8:.1f}" y="{middle + 4:.1f}">{markup(bar.told)}</text>'
    )
