"""Word segmentation of Chinese and mixed text."""

import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import HeedfulError
from heedful.text import words as words_module
from heedful.text.words import words


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(folder))
        words_module._segmenter.cache_clear()
        yield folder
    words_module._segmenter.cache_clear()


def parts(text):
    return [text[start:end] for start, end in words(text)]


def test_chinese_words():
    assert parts("我来到北京清华大学。") == ["我", "来到", "北京", "清华大学", "。"]


def test_other_words_stay_whole():
    assert parts("naïve don't state-of-the-art 3.14, 在Google工作") == (
        ["naïve", "don't", "state-of-the-art", "3.14", ",", "在", "Google", "工作"]
    )


@settings(max_examples=50)
@given(st.one_of(st.text(), st.text("中国人民a b,.’'")))
def test_all_but_white_space_is_covered_in_order(text):
    found = words(text)
    assert all(start < end for start, end in found)
    assert all(one[1] <= two[0] for one, two in pairwise(found))
    assert "".join(parts(text)) == "".join(text.split())


def test_the_cache_is_in_the_cache_folder_and_nothing_is_printed(own_cache, capfd):
    words("北京大学")
    assert (own_cache / "heedful" / "jieba.cache").is_file()
    assert capfd.readouterr() == ("", "")


def test_without_jieba_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    words_module._segmenter.cache_clear()
    assert parts("no ideographs") == ["no", "ideographs"]
    with pytest.raises(HeedfulError, match=r"heedful\[zh\]"):
        words("北京")
    words_module._segmenter.cache_clear()
