"""The page of a ladder: numbers where there are some, reasons where there are none, and nothing from elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from heedful.views.bar_chart import Bar, bar_chart
from heedful.views.ladder_page import reasons, write_ladder_page
from heedful.views.ladder_quantities import Value, quantities


def row(model: str, **told: Any) -> dict[str, Any]:
    usual = {
        "sees": "left",
        "start": "random",
        "learning_rate": 1e-3,
        "reason": None,
        "size": {"parameters": 5_000_000},
    }
    training = {"steps": 20, "seconds": 30.0, "start_seconds": 10.0, "tokens_per_second": 4000.0, "peak_memory": 3e8}
    tried = {"frozen": {"score": "f1", "mean": 0.5, "spread": 0.01}, "tuned": {"reason": "too <small>\n  remedy: grow"}}
    more = {"speed": {"words_per_second": 9000.0}, "pairs": {"ws": {"spearman": -0.25}}, "tasks": {"names": tried}}
    return {
        "model": model,
        "training": training,
        "perplexity": {"word_perplexity": 321.5, "unknown": 7},
        **usual,
        **more,
        **told,
    }


FAILED = {"reason": "there was no room", "training": {"reason": "there was no room"}}
ROWS = [
    row("gpt"),
    row("bert", perplexity={"pseudo_perplexity": 45.0}),
    row(
        "xlnet",
        **FAILED,
        size=None,
        speed=None,
        perplexity=None,
        pairs={"ws": None},
        tasks={"names": {"frozen": None, "tuned": None}},
    ),
]


def test_quantities_and_reasons() -> None:
    found = {one.title: one for one in quantities(ROWS)}
    assert found["names frozen, f1"].told(ROWS[0]) == "0.500 ±0.010"
    assert found["perplexity a word"].value(ROWS[0]) == Value(321.5) and found["perplexity a word"].told(ROWS[1]) == "–"
    assert found["peak memory"].told(ROWS[0]) == "300 MB" and found["parameters"].told(ROWS[0]) == "5M"
    assert found["unknown tokens of it"].told(ROWS[0]) == "7"  # beside the perplexity, which they make too good
    told = reasons(ROWS, list(found.values()))
    assert ("xlnet", "all", "there was no room") in told and ("gpt", "names tuned", "too <small>") in told
    assert len([1 for model, *_ in told if model == "xlnet"]) == 1


def test_the_page(tmp_path: Path) -> None:
    for name in ("gpt", "bert"):
        (tmp_path / name).mkdir()
        lines = [{"step": step, "losses": {"lm": 5 - step / 10}} for step in (10, 20)]
        (tmp_path / name / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = {"budget": "30s", "size": "mini", "settings": {"corpus": "some/corpus"}, "rows": ROWS}
    runs = {one["model"]: tmp_path / one["model"] for one in ROWS}
    page = write_ladder_page(tmp_path / "ladder.html", told, runs).read_text(encoding="utf-8")
    assert "too &lt;small&gt;" in page and "seconds 20\ngpt 4" in page  # 10 to start, 10 of 20 steps
    assert '<th scope="row">names frozen, f1</th><td>0.500 ±0.010</td><td>0.500 ±0.010</td><td>failed</td>' in page
    assert "loss of gpt, bert: lm" in page
    assert "://" not in page and "src=" not in page and "href" not in page and "default-src 'none'" in page


def test_bars_grow_from_zero_to_both_sides() -> None:
    drawn = bar_chart("agreement", [Bar("a", 0, 0.5, "0.5", 0.1), Bar("b", 1, -0.25, "-0.25")])
    boxes = [tuple(map(float, found)) for found in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn)]
    (first, wide), (second, narrow) = boxes
    assert abs(wide - 2 * narrow) < 0.2 and abs(second + narrow - first) < 0.2  # both end at zero
    assert drawn.count("bar-spread") == 1
    assert "no values" in bar_chart("nothing", [])
