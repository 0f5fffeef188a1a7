"""Charts of heedful.views as SVG files that stand by themselves, one or several in a file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from heedful.views.markup import markup
from heedful.views.style import STYLE
from heedful.views.svg import HEIGHT, LEFT, WIDTH

HEADING = 34  # the height of a panel's heading
OUTER = re.compile(r'<svg viewBox="0 0 (\d+) (\d+)" role="img" aria-label="([^"]*)">(.*)</svg>', re.DOTALL)


def standalone(chart: str) -> str:
    """A chart with its style inside, as the text of a file."""
    width, _, _, inside = _parts(chart)
    head = chart[: -len(inside + "</svg>")].replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"')
    # In a page the font comes from the body, and the column limits the width.
    look = f"svg {{ background: var(--card); font-family: system-ui, sans-serif; max-width: max(44rem, {width}px); }}"
    return f"{head}<style>{STYLE}{look}</style>{inside}</svg>\n"


def panels(charts: Mapping[str, str], columns: int = 2) -> str:
    """Several charts as one, each under its heading."""
    drawn, told = [], []
    for number, (heading, chart) in enumerate(charts.items()):
        row, column = divmod(number, columns)
        _, _, label, inside = _parts(chart)
        title = f'<text x="{LEFT}" y="22" font-weight="600">{markup(heading)}</text>'
        place = f"translate({column * WIDTH} {row * (HEADING + HEIGHT)})"
        drawn.append(f'<g transform="{place}">{title}<g transform="translate(0 {HEADING})">{inside}</g></g>')
        told.append(label)
    width, height = min(columns, len(charts)) * WIDTH, -(-len(charts) // columns) * (HEADING + HEIGHT)
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{" ".join(told)}">{"".join(drawn)}</svg>'


def _parts(chart: str) -> tuple[int, int, str, str]:
    """Width, height, label and content of a chart."""
    found = OUTER.fullmatch(chart)
    if found is None:
        raise ValueError(f"not a chart: {chart[:80]}")
    return int(found[1]), int(found[2]), found[3], found[4]
