"""Sentence patterns with named slots that can be filled in and read back, in both languages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from heedful.toy.world import Word

SLOT = re.compile(r"\{(\w+)\}")
_FILLING = r"[A-Z]\w+ [A-Z]\w+|\w+?"  # an English full name, or else one word


def fill_pattern(pattern: Word, language: str, **words: Word) -> str:
    """What `pattern` says with `words` in its slots."""
    return pattern.say(language).format(**{slot: word.say(language) for slot, word in words.items()})


@cache
def _reader(pattern: str) -> re.Pattern[str]:
    """A regular expression for `pattern`; a slot that comes twice must hold the same words twice."""
    parts, seen = [], set[str]()
    for i, part in enumerate(SLOT.split(pattern)):
        if i % 2 == 0:
            parts.append(re.escape(part))
        else:
            parts.append(f"(?P={part})" if part in seen else f"(?P<{part}>{_FILLING})")
            seen.add(part)
    return re.compile("".join(parts))


def read(patterns: Iterable[Word], text: str) -> tuple[Word, re.Match[str]]:
    """The first pattern that `text` is made of, in either language, and what is in its slots."""
    for pattern in patterns:
        for form in pattern:
            if match := _reader(form).fullmatch(text):
                return pattern, match
    raise ValueError(f"no pattern fits {text!r}")
