"""Charts: well-formed, inside their box, and saying what they should."""

from __future__ import annotations

import math
import random
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.views.svg import HEIGHT, LEFT, WIDTH, Curve, line_chart, share_bar

VALUES = st.floats(-1e300, 1e300) | st.just(math.nan) | st.floats(0, 10)


def parse(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def places(svg: str, style: str) -> list[tuple[float, float]]:
    """The corners of the first path with a class."""
    path = next(p for p in parse(svg).iter("path") if style in p.get("class", ""))
    return [(float(x), float(y)) for x, y in re.findall(r"([-\d.]+) ([-\d.]+)", path.get("d", ""))]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.text(), st.lists(VALUES, max_size=60), st.booleans()), max_size=4))
def test_any_values_and_names_give_well_formed_charts_inside_the_box(drawn) -> None:
    plain = "".join  # XML has no way to say control characters; HTML, which the charts live in, does
    curves = [
        Curve(plain(c for c in name if c.isprintable()), list(enumerate(values)), level)
        for name, values, level in drawn
    ]
    svg = line_chart("title", curves, end=60)
    if svg.startswith("<svg"):
        numbers = [v for e in parse(svg).iter() for k, v in e.items() if k not in ("aria-label", "class")]
        assert not any("nan" in number or "inf" in number for number in numbers)
        for style in ("c0 curve", "level"):
            if f'"{style}' in svg:
                assert all(LEFT - 1 <= x <= WIDTH and -1 <= y <= HEIGHT for x, y in places(svg, style))
    parse(svg)


def test_the_spread_of_a_value_is_a_bar_around_it_inside_the_axis() -> None:
    svg = line_chart("BLEU", [Curve("RNN", [(10, 20.0), (20, 15.0)], spread=[(10, 5.0, 40.0)])], 20)
    (at, low), (same, high) = places(svg, "c0 spread")
    curve = places(svg, "c0 curve")
    assert at == same == curve[0][0] and high < curve[0][1] < low <= HEIGHT  # upwards is less in SVG
    assert high >= 0


def test_a_falling_curve_falls_and_a_baseline_is_flat() -> None:
    svg = line_chart("loss", [Curve("mlm", [(0, 5.0), (50, 3.0), (100, 2.0)]), Curve("uni", [(50, 4.0)], True)], 100)
    falling, level = places(svg, "c0 curve"), places(svg, "level")
    assert [y for _, y in falling] == sorted(y for _, y in falling)  # y grows downwards
    assert len({y for _, y in level}) == 1 and (level[0][0], level[1][0]) == (falling[0][0], falling[-1][0])
    assert {"mlm 2", "uni 4"} <= {text.text for text in parse(svg).iter("text")}
    titles = [title.text for title in parse(svg).iter("title")]
    assert titles == ["step 0\nmlm 5\nuni 4", "step 50\nmlm 3\nuni 4", "step 100\nmlm 2\nuni 4"]


def test_a_gap_interrupts_the_line() -> None:
    svg = line_chart("x", [Curve("x", [(0, 1.0), (1, 2.0), (2, math.nan), (3, 1.0)])], 3)
    (path,) = [p.get("d", "") for p in parse(svg).iter("path")]
    assert path.count("M") == 2 and path.endswith("h0")


def test_noise_stays_behind_a_smooth_line_and_the_file_small() -> None:
    rng = random.Random(0)
    curves = [Curve(str(n), [(float(i), rng.random()) for i in range(50_000)]) for n in range(2)]
    svg = line_chart("x", curves, 50_000)
    behind, front = places(svg, "c0 raw"), places(svg, "c0 curve")
    spread = [max(y for _, y in line[50:]) - min(y for _, y in line[50:]) for line in (behind, front)]
    assert spread[1] < 0.3 * spread[0]
    assert len(svg) < 60_000


def test_labels_never_overlap() -> None:
    svg = line_chart("x", [Curve(f"n{i}", [(0, 1.0), (1, 1.0 + i / 1e6)]) for i in range(10)], 1)
    heights = sorted(float(t.get("y", 0)) for t in parse(svg).iter("text") if t.get("class") == "label")
    assert min(b - a for a, b in pairwise(heights)) >= 15 and heights[-1] <= HEIGHT


def test_the_bar_is_in_proportion_and_skips_what_took_no_time() -> None:
    bar = parse(share_bar({"forward": 30.0, "nothing": 0.0, "backward": 60.0, "other": 10.0}))
    assert [float(r.get("width", 0)) for r in bar.iter("rect")] == pytest.approx([298, 598, 98])
    assert [g.get("class") for g in bar.iter("g")] == ["c0 part", "c2 part", "c3 part"]
    assert [t.text for t in bar.iter("text")] == ["30%", "60%", "10%"]
