"""The page of a run."""

from __future__ import annotations

import json
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import HeedfulError
from heedful.views.report import write_report

EVIL = "<script>alert('x')</script>\"><img src=http://evil.example/x onerror=alert(1)>"
VOID = {"meta"}


class Page(HTMLParser):
    """Tags, attributes and text; every opened element must be closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def report(folder: Path, rows: list[dict[str, Any]], timing: Any = None, config: str | None = None) -> Page:
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    if timing is not None:
        (folder / "timing.json").write_text(json.dumps(timing))
    if config is not None:
        (folder / "config.toml").write_text(config, encoding="utf-8")
    html = write_report(folder).read_text(encoding="utf-8")
    page = Page(html)
    assert not {"script", "img", "link", "iframe", "object", "image", "use"} & set(page.tags)
    assert not {name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href", "style")}
    assert not re.search(r"url\(|@import|https?://", page_style(html))
    return page


def page_style(html: str) -> str:
    return html.partition("<style>")[2].partition("</style>")[0]


def test_a_whole_run(tmp_path: Path) -> None:
    rng = random.Random(0)
    rows: list[dict[str, Any]] = []
    for step in range(10, 1001, 10):
        losses = {"mlm": 9 - step / 200 + rng.random(), "nsp": 0.7 - step / 2000}
        rows.append({"step": step, "losses": losses, "tokens": step * 100, "tokens_per_second": 900 + rng.random()})
        if step % 250 == 0:
            rows.append({"step": step, "evaluation": {"mlm_loss": 8 - step / 200, "unigram_loss": 6.5, "f1": 0.5}})
    rows.append(
        {"step": 1000, "examples": [{"text": "北京是中国的首[MASK]。", "guesses": [["都", 0.9312345], ["府", 0.02]]}]}
    )
    rows.append({"step": 1000, "examples": ["plain", {"other": {"a": 1}}], "note": "almost done"})
    parts = {"tokenise": 0.0, "forward": 60.0, "backward": 120.0, "other": 20.0}
    timing = {"parts": parts, "wall": 200.0, "background": 7.0, "sessions": 2}
    page = report(tmp_path / "run", rows, timing, 'seed = 1\nname = "中文 <b>"\n')
    assert page.tags.count("figure") == 4  # mlm, nsp, evaluation: loss, tokens per second; f1 never moves
    for told in ("run", "1,000", "100,000", "3 min 20 s", "unigram 6.5", "都 0.9312 · 府 0.02", "almost done", "plain"):
        assert told in page.text
    for told in ("forward 1 min 00 s · 30.0%", "100.0% of the wall time", "7.0 s of work", 'name = "中文 <b>"'):
        assert told in page.text
    assert "tokenise" not in page.text


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"step": 0}],
        [{"step": 0, "x": 1.0}],
        [{"step": 7, "losses": {"a": None}}],
        [{"step": 7, "losses": {"a": 1.5}}, {"step": 7, "evaluation": {"a_loss": 1.0, "bigram_loss": None}}],
        [{"step": s, "x": [1e308, -1e308, 1e-308][s % 3]} for s in range(9)],
        [{"step": 1, "x": 10**400, "examples": [], "note": 3}],
    ],
)
def test_little_and_strange_metrics(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    assert "Training report" in report(tmp_path, rows).text


@pytest.mark.parametrize("timing", [{}, {"parts": {}}, {"parts": [1]}, {"parts": {"a": "x", "b": None}, "wall": -1}])
def test_strange_times(tmp_path: Path, timing: Any) -> None:
    assert "Where the time went" not in report(tmp_path, [], timing).text


def test_everything_is_escaped(tmp_path: Path) -> None:
    rows = [
        {"step": s, "losses": {EVIL: 1.0 / s, f"{EVIL}_loss": 1.0 / s, f"bigram_{EVIL}_loss": 2.0}, EVIL: 1.0 / s}
        for s in (1, 2)
    ]
    rows.append({"step": 2, "note": EVIL, "examples": [EVIL, {EVIL: EVIL}, [EVIL, {EVIL: 1}]], EVIL: {EVIL: 0.5}})
    rows.append({"step": 2, "note": "half a pair \ud800"})
    page = report(tmp_path / EVIL.replace("/", "∕"), rows, {"parts": {EVIL: 9.0, "b": 1.0}, "wall": 10}, f"# {EVIL}\n")
    assert page.text.count("alert('x')") >= 20 and "half a pair ?" in page.text


def test_no_folder_of_a_run(tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match="no run"):
        write_report(tmp_path)


def test_broken_files_are_named_and_the_old_report_stays(tmp_path: Path) -> None:
    report(tmp_path, [{"step": 1, "x": 1.0}])
    before = (tmp_path / "report.html").read_bytes()
    (tmp_path / "config.toml").write_bytes(b"\xff")
    with pytest.raises(HeedfulError, match="UTF-8") as told:
        write_report(tmp_path)
    assert told.value.where == tmp_path / "config.toml"
    (tmp_path / "timing.json").write_text("[]")
    with pytest.raises(HeedfulError, match="JSON object"):
        write_report(tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before
