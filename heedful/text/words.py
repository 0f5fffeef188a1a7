"""Words of Chinese and mixed text: ideographs through jieba's dictionary, everything else by its shape."""

from __future__ import annotations

import functools
import logging
import os
import re
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError
from heedful.text.ideographs import IDEOGRAPHS

# A run of ideographs; a word of other letters and digits, with apostrophes, hyphens and decimal points inside; a sign.
_OTHER = rf"[^\W{IDEOGRAPHS}]+(?:['’.-][^\W{IDEOGRAPHS}]+)*|\S"
_TOKEN = re.compile(rf"([{IDEOGRAPHS}]+)|{_OTHER}")
_OTHER_WORD, _RUN_OF_IDEOGRAPHS = re.compile(_OTHER), re.compile(f"[{IDEOGRAPHS}]{{2}}")


def words(text: str) -> list[tuple[int, int]]:
    """Start and end of each word in order; all but white space is covered, and words without ideographs stay whole."""
    spans = []
    for token in _TOKEN.finditer(text):
        if token[1] is None or len(token[1]) == 1:
            spans.append(token.span())
            continue
        start = token.start()
        for word in _segmenter().cut(token[1]):
            spans.append((start, start + len(word)))
            start += len(word)
    return spans


def needs_segmenter(text: str) -> bool:
    """Whether the words of a text are found by jieba's dictionary and not by their shape alone."""
    return bool(_RUN_OF_IDEOGRAPHS.search(text))


def split_words(text: str) -> list[str]:
    """The words themselves, in order and as they are written."""
    if not needs_segmenter(text):
        return _OTHER_WORD.findall(text)  # the same words, and far fewer calls
    return [text[start:end] for start, end in words(text)]


def cache_folder() -> Path:
    """Where files that can be made again are kept: `heedful` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heedful"


@functools.lru_cache(maxsize=1)
def _segmenter() -> Any:
    try:
        import jieba
    except ImportError:
        raise HeedfulError("Chinese words need jieba", remedy="pip install 'heedful[zh]'") from None
    jieba.setLogLevel(logging.CRITICAL)  # it reports every start of its own
    segmenter = jieba.Tokenizer()
    segmenter.tmp_dir = str(_writable_cache())
    segmenter.initialize()
    return segmenter


def _writable_cache() -> Path:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HeedfulError(
            f"the cache folder cannot be made: {error.strerror}", where=folder, remedy="set XDG_CACHE_HOME to another"
        ) from error
    return folder
