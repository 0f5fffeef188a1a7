"""What each word of a translation looked at: matrices of source and target as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from heedful.atomic import atomic_file
from heedful.views.markup import markup
from heedful.views.numbers import exact
from heedful.views.page import whole_page
from heedful.views.svg import text_width

CELL = 26
GAP = 8  # between labels and cells
SLOPE = 0.7071  # labels of columns rise at 45°
# A weight below this is drawn as nothing: its shade could not be seen.
LEAST_SHADE = 0.005


class Matrix(NamedTuple):
    """A row of weights over the source for each piece of the target."""

    source: Sequence[str]
    target: Sequence[str]
    weights: Sequence[Sequence[float]]


def write_alignments(path: str | Path, name: str, said: str, matrices: Iterable[Matrix]) -> None:
    """Write a page of matrices, whole or not at all; `said` tells whose attention they are."""
    with atomic_file(path) as file:
        file.write(alignment_page(name, said, matrices))


def alignment_page(name: str, said: str, matrices: Iterable[Matrix]) -> str:
    """The page as HTML: rows are what was said, columns what it was said of, and the darker the more."""
    header = (
        f'<p class="aside">{markup(said)} A row is a piece of the translation and a column a piece of the source; '
        "the stronger the colour, the more of its attention the row gives to the column. "
        "Rest on a cell to read its weight.</p>"
    )
    figures = [f'<figure class="card">{picture(matrix)}</figure>' for matrix in matrices]
    return whole_page("Alignments", name, header, [*figures, "" if figures else '<p class="none">No sentences.</p>'])


def picture(matrix: Matrix) -> str:
    """A matrix as SVG, in its own size so that long sentences stay readable; a wide one scrolls in its card."""
    left = GAP + max(map(text_width, matrix.target), default=0.0)
    labels = SLOPE * max(map(text_width, matrix.source), default=0.0)
    top = GAP + labels + CELL / 2
    width, height = left + GAP + CELL * len(matrix.source) + labels, top + GAP + CELL * len(matrix.target)
    summary = f"{' '.join(matrix.target)} ← {' '.join(matrix.source)}"
    size = f"width:{width:.0f}px;min-width:{width:.0f}px;max-width:none"
    return "".join(
        [
            f'<svg viewBox="0 0 {width:.0f} {height:.0f}" style="{size}" role="img" aria-label="{markup(summary)}">',
            _columns(matrix.source, left + GAP, top),
            _rows(matrix.target, left, top + GAP),
            _grid(matrix, left + GAP, top + GAP),
            _cells(matrix, left + GAP, top + GAP),
            "</svg>",
        ]
    )


def _columns(labels: Sequence[str], left: float, bottom: float) -> str:
    marks = []
    for number, label in enumerate(labels):
        x = left + CELL * (number + 0.6)
        marks.append(f'<text transform="translate({x:.1f} {bottom:.1f}) rotate(-45)">{markup(label)}</text>')
    return "".join(marks)


def _rows(labels: Sequence[str], right: float, top: float) -> str:
    heights = (top + CELL * (number + 0.5) + 4.5 for number in range(len(labels)))
    return "".join(
        f'<text x="{right:.1f}" y="{y:.1f}" text-anchor="end">{markup(label)}</text>'
        for y, label in zip(heights, labels, strict=True)
    )


def _grid(matrix: Matrix, left: float, top: float) -> str:
    right, bottom = left + CELL * len(matrix.source), top + CELL * len(matrix.target)
    upright = [
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>'
        for x in (left + CELL * number for number in range(len(matrix.source) + 1))
    ]
    level = [
        f'<line class="grid" x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        for y in (top + CELL * number for number in range(len(matrix.target) + 1))
    ]
    return "".join(upright + level)


def _cells(matrix: Matrix, left: float, top: float) -> str:
    return "".join(
        _cell(left + CELL * column, top + CELL * row, weight, f"{target} ← {source}: {exact(round(weight, 4))}")
        for row, (target, weights) in enumerate(zip(matrix.target, matrix.weights, strict=True))
        for column, (source, weight) in enumerate(zip(matrix.source, weights, strict=True))
    )


def _cell(x: float, y: float, weight: float, told: str) -> str:
    shade = f"{weight:.3f}" if weight >= LEAST_SHADE else "0"
    box = f'<rect x="{x:.1f}" y="{y:.1f}" width="{CELL}" height="{CELL}" fill-opacity="{shade}"/>'
    return f'<g class="c0 part"><title>{markup(told)}</title>{box}</g>'
