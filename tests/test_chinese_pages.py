"""Every page in Chinese has the commands, the code and the headings of its page in English."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.zh-CN.md"))


def shown(path: Path) -> list[str]:
    """The blocks of code and commands, without comments, which may be in either language."""
    text = path.read_text(encoding="utf-8")
    fenced = re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    indented = [line for line in text.splitlines() if line.startswith("    ")]
    return [re.sub(r" +#.*", "", line) for line in (*"".join(fenced).splitlines(), *indented)]


def levels(path: Path) -> list[str]:
    prose = re.sub(r"^```\w*\n.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^(#+) ", prose, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_chinese_page_shows_the_same(page: Path) -> None:
    english = page.with_name(page.name.replace(".zh-CN", ""))
    assert shown(page) == shown(english) and shown(page)
    assert levels(page) == levels(english)


def test_the_pages_that_a_user_needs_are_there() -> None:
    wanted = {f"{name}.zh-CN.md" for name in ("own-task", "python", "toy-world", "translation")}
    assert wanted <= {page.name for page in PAGES}
