"""The page of alignment matrices."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from heedful.views.alignments import Matrix, alignment_page, picture, write_alignments

EVIL = "<script>alert('x')</script>\"><img src=http://evil.example/x onerror=alert(1)>"
MATRIX = Matrix(["[CLS]", "a", "dog", "[SEP]"], ["一", "只狗", "[SEP]"], [[0, 1, 0, 0], [0.1, 0.2, 0.7, 0], [0.25] * 4])


class Tags(HTMLParser):
    """What a page is made of; every element that opens must close in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.titles: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "title" and "svg" in self.open:
            self.titles.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_a_cell_for_each_pair_of_pieces_as_dark_as_its_weight() -> None:
    found = Tags(picture(MATRIX))
    shades = [float(cell["fill-opacity"] or "nan") for cell in found.all("rect")]
    assert shades == pytest.approx([weight for row in MATRIX.weights for weight in row], abs=1e-3)
    assert found.titles[6] == "只狗 ← dog: 0.7" and len(found.titles) == 12
    cells = found.all("rect")
    assert len({cell["x"] for cell in cells}) == 4 and len({cell["y"] for cell in cells}) == 3
    assert len(found.all("text")) == 7


def test_a_page_is_one_file_without_network_or_script() -> None:
    html = alignment_page("en → zh", "Layer 2.", [MATRIX, MATRIX])
    page = Tags(html)
    names = {name for name, _ in page.tags}
    assert not {"script", "img", "link", "iframe", "object", "image", "use"} & names
    attributes = {name for _, found in page.tags for name in found}
    assert not {name for name in attributes if name.startswith("on") or name in ("src", "href")}
    assert not re.search(r"url\(|@import|https?://", html)
    assert len(page.all("figure")) == 2 and "Layer 2." in html and 'charset="utf-8"' in html


def test_pieces_are_text_and_not_markup() -> None:
    page = Tags(alignment_page(EVIL, EVIL, [Matrix([EVIL], [EVIL, "\ud800"], [[1.0], [0.5]])]))
    assert not {"script", "img"} & {name for name, _ in page.tags}


def test_everything_is_inside_the_picture() -> None:
    matrix = Matrix(["x" * 30, "中国" * 8], ["y" * 20, "b"], [[0.5, 0.5]] * 2)
    found = Tags(picture(matrix))
    width, height = map(float, (found.all("svg")[0]["viewbox"] or "").split()[2:])
    for cell in found.all("rect"):
        assert float(cell["x"] or 0) + 26 <= width and float(cell["y"] or 0) + 26 <= height
    places = [re.match(r"translate\((\S+) (\S+)\)", text.get("transform") or "") for text in found.all("text")]
    tops = [float(place[2]) for place in places if place]
    assert min(tops) - 0.7071 * 16 * 13.5 >= 0  # the longest label of a column rises from here


def test_weights_too_small_to_see_and_no_sentences() -> None:
    assert 'fill-opacity="0"' in picture(Matrix(["a"], ["b"], [[1e-4]]))
    assert "No sentences" in alignment_page("a", "b", [])
    Tags(picture(Matrix([], [], [])))


def test_the_file_is_written_whole(tmp_path: Path) -> None:
    write_alignments(tmp_path / "a.html", "en → zh", "", [MATRIX])
    assert "只狗" in (tmp_path / "a.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError):
        write_alignments(tmp_path / "a.html", "en → zh", "", [Matrix(["a"], ["b"], [])])
    assert "只狗" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["a.html"]
