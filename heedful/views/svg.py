"""Charts as inline SVG: pure functions from numbers to markup, drawn with the page's colours (see `style`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from heedful.views.curves import Point, is_noisy, smooth, thin
from heedful.views.markup import markup
from heedful.views.numbers import duration, exact, short, ticks

WIDTH, HEIGHT = 540, 270
LEFT, TOP, BOTTOM = 52, 14, 42
MOST_POINTS = 400
MOST_STOPS = 48  # places at which the pointer is told the values
LINE_OF_TEXT = 16
COLOURS = 8
LONGEST_LABEL = 26
_MIDDLE = 'text-anchor="middle"'


@dataclass(frozen=True)
class Curve:
    """A line of a chart; a baseline is a dashed level at its last value.

    `spread` holds x, the lowest and the highest value that may be true there, drawn as upright bars; `number` chooses
    the colour where its place among the curves does not.
    """

    label: str
    points: Sequence[Point]
    baseline: bool = False
    spread: Sequence[tuple[float, float, float]] = ()
    number: int | None = None


@dataclass(frozen=True)
class _Line:
    """A curve ready to draw: what the eye follows, and the raw values behind it where they are noisy."""

    label: str
    style: str
    front: list[Point]
    back: list[Point]
    level: float | None = None
    spread: Sequence[tuple[float, float, float]] = ()

    @property
    def last(self) -> Point:
        """Where the label stands."""
        return next((x, y) for x, y in reversed(self.front) if math.isfinite(y))


@dataclass(frozen=True)
class _Axis:
    """From values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def line_chart(title: str, curves: Sequence[Curve], end: float, x_name: str = "step") -> str:
    """A chart of curves over x from 0 to `end`, labelled on the right; the pointer is shown the values."""
    end = end if end > 0 else 1.0
    lines = _lines([curve for curve in curves if any(math.isfinite(y) for _, y in curve.points)], end)
    if not lines:
        return f'<p class="none">{markup(title)}: no finite values</p>'
    labels = [_label(line, alone=len(lines) == 1) for line in lines]
    right = WIDTH - 22 - max(map(text_width, labels))
    x_ticks, y_ticks = ticks(0, end, about=6), ticks(*_range(lines))
    x_axis = _Axis(0, end, LEFT, right)
    y_axis = _Axis(y_ticks[0], y_ticks[-1], HEIGHT - BOTTOM, TOP)
    return "".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{markup(_summary(title, lines, x_name))}">',
            _grid(x_axis, y_axis, x_ticks, y_ticks, x_name),
            _plot(lines, x_axis, y_axis),
            _labels(lines, labels, y_axis, right),
            _stops(lines, x_axis, y_axis, x_name),
            "</svg>",
        ]
    )


def share_bar(parts: Mapping[str, float]) -> str:
    """A bar of parts in the proportion of their seconds, each coloured by its place among the parts."""
    total = sum(parts.values())
    x, drawn = 0.0, []
    for number, (name, seconds) in enumerate(parts.items()):
        if not seconds:
            continue
        width = 1000 * seconds / total
        told = f"{name}: {duration(seconds)}, {seconds / total:.1%}"
        # A hair of the background separates neighbours; what is too thin for it stays visible.
        box = f'<rect x="{x:.1f}" y="0" width="{max(width - 2, 0.8):.1f}" height="34" rx="3"/>'
        inside = f'<text x="{x + width / 2 - 1:.1f}" y="22">{seconds / total:.0%}</text>' if width > 55 else ""
        drawn.append(f'<g class="{colour(number)} part"><title>{markup(told)}</title>{box}{inside}</g>')
        x += width
    label = ", ".join(f"{name} {seconds / total:.0%}" for name, seconds in parts.items() if seconds)
    return f'<svg class="bar" viewBox="0 0 1000 34" role="img" aria-label="{markup(label)}">{"".join(drawn)}</svg>'


def colour(number: int) -> str:
    """The style class of the n-th colour; they repeat."""
    return f"c{number % COLOURS}"


def _lines(curves: Sequence[Curve], end: float) -> list[_Line]:
    lines, colours, levels = [], 0, 0
    for curve in curves:
        if curve.baseline:
            level = next(y for _, y in reversed(curve.points) if math.isfinite(y))
            lines.append(_Line(curve.label, f"level d{levels % 3}", [(0, level), (end, level)], [], level))
            levels += 1
        else:
            lines.append(_line(curve, colour(colours if curve.number is None else curve.number)))
            colours += 1
    return lines


def _line(curve: Curve, style: str) -> _Line:
    values = [y for _, y in curve.points]
    if not is_noisy(values):
        return _Line(curve.label, style, thin(curve.points, MOST_POINTS), [], spread=curve.spread)
    return _Line(curve.label, style, smooth(curve.points, MOST_POINTS), thin(curve.points, MOST_POINTS))


def _range(lines: Sequence[_Line]) -> tuple[float, float]:
    """What the y axis must hold: all of what the eye follows, and of the noise behind it all but the extremes."""
    shown = [y for line in lines for _, y in line.front if math.isfinite(y)]
    shown += [y for line in lines for _, *both in line.spread for y in both if math.isfinite(y)]
    for line in lines:
        noise = sorted(y for _, y in line.back if math.isfinite(y))
        cut = len(noise) // 50
        shown += noise[cut : len(noise) - cut]
    return min(shown), max(shown)


def _grid(x_axis: _Axis, y_axis: _Axis, x_ticks: Sequence[float], y_ticks: Sequence[float], x_name: str) -> str:
    marks = []
    for value in y_ticks:
        y = y_axis.at(value)
        marks.append(f'<line class="grid" x1="{LEFT}" x2="{x_axis.end:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        marks.append(f'<text class="tick" x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>')
    for value in x_ticks:
        if x_axis.low <= value <= x_axis.high:
            x = x_axis.at(value)
            marks.append(f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}" {_MIDDLE}>{short(value)}</text>')
    middle = (LEFT + x_axis.end) / 2
    marks.append(f'<text class="tick" x="{middle:.1f}" y="{HEIGHT - 6}" {_MIDDLE}>{markup(x_name)}</text>')
    return "".join(marks)


def _plot(lines: Sequence[_Line], x_axis: _Axis, y_axis: _Axis) -> str:
    """The noise first, cut at the edge of the plot, then the baselines, then the curves with a dot at their end."""
    box = f'x="{LEFT}" y="{TOP}" width="{x_axis.end - LEFT:.1f}" height="{HEIGHT - BOTTOM - TOP}"'
    view = f'viewBox="{LEFT} {TOP} {x_axis.end - LEFT:.1f} {HEIGHT - BOTTOM - TOP}"'
    noise = [_path(line.back, f"{line.style} raw", x_axis, y_axis) for line in lines if line.back]
    parts = [f"<svg {box} {view}>{''.join(noise)}</svg>"] if noise else []
    for line in sorted(lines, key=lambda line: line.level is None):
        for x, low, high in line.spread:
            parts.append(_path([(x, low), (x, high)], f"{line.style} spread", x_axis, y_axis))
        parts.append(_path(line.front, f"{line.style} curve", x_axis, y_axis))
        if line.level is None:
            x, y = line.last
            parts.append(f'<circle class="{line.style} dot" cx="{x_axis.at(x):.1f}" cy="{y_axis.at(y):.1f}" r="3.5"/>')
    return "".join(parts)


def _path(points: Sequence[Point], style: str, x_axis: _Axis, y_axis: _Axis) -> str:
    """Lines between neighbours, interrupted where there is no value; a value alone is a dot (`h0`)."""
    steps = []
    for finite, run in groupby(points, key=lambda point: math.isfinite(point[1])):
        if finite:
            places = [f"{x_axis.at(x):.1f} {y_axis.at(y):.1f}" for x, y in run]
            steps.append(f"M{places[0]}" + ("".join(f"L{place}" for place in places[1:]) or "h0"))
    return f'<path class="{style}" d="{"".join(steps)}"/>'


def _labels(lines: Sequence[_Line], labels: Sequence[str], y_axis: _Axis, right: float) -> str:
    """A label with a key beside each end, pushed apart where they would overlap."""
    wanted = sorted((y_axis.at(line.last[1]), number) for number, line in enumerate(lines))
    marks = []
    for y, number in zip(_apart([y for y, _ in wanted]), (number for _, number in wanted), strict=True):
        line = lines[number]
        key = f'<path class="{line.style} curve" d="M{right + 7:.1f} {y:.1f}h9"/>' if len(lines) > 1 else ""
        x = right + (20 if key else 8)
        marks.append(f'{key}<text class="label" x="{x:.1f}" y="{y + 4:.1f}">{markup(labels[number])}</text>')
    return "".join(marks)


def _apart(ys: Sequence[float]) -> list[float]:
    """Sorted heights moved as little as needed to leave a line of text between neighbours."""
    placed: list[float] = []
    for y in ys:
        placed.append(max(y, placed[-1] + LINE_OF_TEXT) if placed else y)
    overhang = max(placed[-1] - (HEIGHT - BOTTOM), 0.0)
    limit = placed[-1] - overhang
    for index in range(len(placed) - 1, -1, -1):
        placed[index] = min(placed[index], limit)
        limit = placed[index] - LINE_OF_TEXT
    return placed


def _stops(lines: Sequence[_Line], x_axis: _Axis, y_axis: _Axis, x_name: str) -> str:
    """Upright strips that show a hairline, dots and the values under the pointer, without any script."""
    told = [(line, dict(line.front)) for line in lines if line.level is None]
    xs = sorted({x for _, values in told for x in values})
    xs = xs[:: math.ceil(len(xs) / MOST_STOPS) or 1]
    edges = [LEFT - 4.0, *(x_axis.at((a + b) / 2) for a, b in pairwise(xs)), x_axis.end + 4.0]
    strips = []
    for x, start, end in zip(xs, edges[:-1], edges[1:], strict=True) if xs else ():
        here = [(line, values[x]) for line, values in told if math.isfinite(values.get(x, math.nan))]
        rows = [f"{x_name} {exact(x)}", *(f"{line.label} {exact(y)}" for line, y in here)]
        rows += [f"{line.label} {exact(line.level)}" for line in lines if line.level is not None]
        at = f"{x_axis.at(x):.1f}"
        dots = "".join(f'<circle class="{line.style}" cx="{at}" cy="{y_axis.at(y):.1f}" r="3"/>' for line, y in here)
        box = f'<rect x="{start:.1f}" y="{TOP}" width="{end - start:.1f}" height="{HEIGHT - TOP - BOTTOM}"/>'
        hair = f'<line x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        strips.append(f'<g class="stop"><title>{markup(chr(10).join(rows))}</title>{box}{hair}{dots}</g>')
    return "".join(strips)


def _label(line: _Line, alone: bool) -> str:
    value = exact(line.last[1])
    name = line.label if len(line.label) <= LONGEST_LABEL else f"{line.label[: LONGEST_LABEL - 1]}…"
    return value if alone else f"{name} {value}"


def _summary(title: str, lines: Sequence[_Line], x_name: str) -> str:
    ends = [f"{line.label}: {exact(line.last[1])} at the end" for line in lines]
    return f"{title} against {x_name}. {'; '.join(ends)}"


def text_width(text: str) -> float:
    """About how wide a label is, in pixels."""
    return sum(13.5 if ord(character) > 0x2E80 else 7.4 for character in text)
