"""Sentences of English, Chinese and mixed text, by rules: fast, and nothing but white space is lost.

A regular expression finds every place where a sentence could end; only for those few is the neighbourhood looked at.
Line ends count as white space: give one paragraph at a time where lines are paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from heedful.text.ideographs import IDEOGRAPHS

_CLOSERS = "\"'”’»)]}」』）】》〉〕｝］"
_OPENERS = "\"'“‘«([{「『（【《〈〔"
_KANA = "\u3040-\u30ff"

_STOP = re.compile(rf"[.!?。！？｡…]+[{re.escape(_CLOSERS)}]*")
# Ends a sentence wherever it stands; the other stops only before white space, ! and ? also between ideographs.
_CHINESE_STOP = re.compile("[。！？｡]|……")
_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}{_KANA}]")
_NEXT_WORD = re.compile(rf"\s*[{re.escape(_OPENERS)}]*(\w*)")
_NEXT_SIGN = re.compile(r"\s*(\S?)")
_LAST_WORD = re.compile(rf"[^\s{re.escape(_OPENERS)}–—/-]*$")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")
_NEVER_FIRST = frozenset(",;:)]}%&=+/–—…，、；：）」』”’")
# No abbreviation is longer; looking back no further keeps long unbroken runs cheap.
_LONGEST_ABBREVIATION = 24


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# A name or an explanation follows: never the end of a sentence.
_LEADING = _set(
    "mr mrs ms mx dr prof gen col maj capt cpt cmdr lt sgt cpl pvt adm rev hon sen rep gov pres supt messrs mme mlle "
    "e.g i.e cf vs v viz approx ca"
)
# Abbreviations before a number, otherwise words like any other.
_BEFORE_NUMBERS = _set("no nos fig figs eq eqs sec chap ch vol vols pp p art op par ed nr")
# Often in mid-sentence and sometimes its end: the next word decides.
_TRAILING = _set("etc al inc ltd co corp bros jr sr esq st mt ft ave blvd rd dept univ assn assoc bldg")
_TRAILING_CAPITALISED = _set("Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu Thurs Fri Sat Sun")
_STARTERS = _set(
    "a according after all also although an and another as at because before both but by despite during each even for "
    "from he her here his how however i if in instead it its later many meanwhile more moreover most my no nor not now "
    "on once one only other others our over she since so some such that the their then there therefore these they this "
    "those though through thus to two under until upon we what when where whether which while who why with yet you your"
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a paragraph in order, without the white space around them."""
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence; together they cover all that is not white space."""
    start = _after_space(text, 0)
    for stop in _STOP.finditer(text):
        if _ends_sentence(text, start, stop):
            yield start, stop.end()
            start = _after_space(text, stop.end())
    if start < len(text):
        yield start, len(text.rstrip())


def _after_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _ends_sentence(text: str, start: int, stop: re.Match[str]) -> bool:
    mark, end = stop[0], stop.end()
    if end == len(text) or _CHINESE_STOP.search(mark):
        return True
    if not text[end].isspace():
        before = text[stop.start() - 1 : stop.start()]
        return mark[0] in "!?" and bool(_IDEOGRAPH.match(before) and _IDEOGRAPH.match(text[end]))
    following = _NEXT_WORD.match(text, end)
    next_word = following[1] if following else ""
    if not next_word:
        sign = _NEXT_SIGN.match(text, end)
        return sign is None or sign[1] not in _NEVER_FIRST
    if next_word[0].islower():
        return False
    return mark[0] != "." or mark.startswith("..") or _is_full_stop(text, start, stop.start(), next_word)


def _is_full_stop(text: str, start: int, dot: int, next_word: str) -> bool:
    """Whether a single dot before a capital, a digit or an ideograph closes the sentence that began at `start`."""
    found = _LAST_WORD.search(text, max(start, dot - _LONGEST_ABBREVIATION), dot)
    word = found[0] if found else ""
    lower = word.lower()
    if word.isdecimal():
        return dot - len(word) > start  # "1. First" numbers a list
    if lower in _LEADING:
        return False
    if lower in _BEFORE_NUMBERS:
        return not next_word[0].isdecimal()
    initial = len(word) == 1 and word.isupper()
    if initial or lower in _TRAILING or word in _TRAILING_CAPITALISED or _DOTTED.fullmatch(word):
        return next_word.lower() in _STARTERS
    return True
