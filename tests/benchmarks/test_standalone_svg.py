"""Charts as pictures of their own, on made-up numbers."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from xml.etree import ElementTree

import pytest

Script = Callable[[str], ModuleType]
SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in picture.iter(f"{SVG}text")]


def test_what_is_no_chart_is_refused(script: Script) -> None:
    with pytest.raises(ValueError, match="not a chart"):
        script("standalone_svg").standalone('<p class="none">loss: no finite values</p>')


def test_a_chart_by_itself_keeps_its_size_and_label(script: Script) -> None:
    rows = [
        {"step": 1, "losses": {"mlm": 5.0}},
        {"step": 9, "evaluation": {"mlm_loss": 4.0, "unigram_loss": 6.0, "bigram_loss": 5.5}},
    ]
    picture = ElementTree.fromstring(script("pretrain_curves").picture("Wiki & more", rows))
    assert picture.get("viewBox") == "0 0 540 270" and "Wiki & more" in picture.get("aria-label", "")
    assert {"held-out 4", "unigram 6", "bigram 5.5"} <= set(texts(picture))
