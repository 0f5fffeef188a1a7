"""In which encoding files are read, and which one a file seems to be in.

An encoding belongs to a whole command and not to one of the functions that it calls, so it is set around them, as
`decimal.localcontext` sets the precision of sums: `with reading_as("gb18030"): …`. Everything else is UTF-8.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from heedful.errors import HeedfulError
from heedful.text.ideographs import IDEOGRAPHS

UTF8 = "utf-8"
SAMPLE = 65_536  # bytes of a file that are looked at
# A text in UTF-16 has a zero byte beside every Latin letter; other texts have none.
ZERO_SHARE = 0.2
# GB18030 gives some meaning to almost any bytes. Those that are meant so give mostly usual characters.
CHINESE_SHARE = 0.6
_MARKS = (
    *((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32")),  # before those of UTF-16, which begin alike
    *((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")),
)
_BINARIES = {
    b"PK\x03\x04": "a zip archive, such as an Excel workbook (.xlsx) or a Word document: save it as .csv or text",
    b"\xd0\xcf\x11\xe0": "an old Office document, such as .xls: save it as .csv or text",
    b"%PDF": "a PDF: save its text",
    b"\x1f\x8b": "packed by gzip: give it a name that ends in .gz",
    b"BZh": "packed by bzip2: unpack it",
    b"\xfd7zXZ\x00": "packed by xz: unpack it",
    b"(\xb5/\xfd": "packed by zstd: unpack it",
    b"PAR1": "a Parquet table: save it as .csv or .jsonl",
    b"ARROW1": "an Arrow table: save it as .csv or .jsonl",
    b"SQLite format 3": "an SQLite database: save the table as .csv",
    b"\x93NUMPY": "an array of NumPy",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
}
_CHINESE = re.compile(rf"[{IDEOGRAPHS}\u3000-\u303f\uff00-\uffef]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x19\x1c-\x1f]")

_current: ContextVar[str] = ContextVar("encoding", default=UTF8)


@contextmanager
def reading_as(encoding: str | None) -> Iterator[None]:
    """Read files in this encoding as long as the block lasts; None changes nothing."""
    token = _current.set(known(encoding) if encoding else _current.get())
    try:
        yield
    finally:
        _current.reset(token)


def current_encoding() -> str:
    """The encoding in which files are read now."""
    return _current.get()


def known(encoding: str) -> str:
    """The usual name of an encoding; one that Python does not know, or that is none of texts, is refused."""
    try:
        found = codecs.lookup(encoding)
        "".encode(encoding)  # what turns bytes into bytes, as base64 does, fails here
    except (LookupError, ValueError):
        remedy = "name one such as gb18030, big5, utf-16, cp1252 or shift_jis"
        raise HeedfulError(f"no encoding is called {encoding!r}", remedy=remedy) from None
    return UTF8 if found.name in ("utf-8", "utf-8-sig") else found.name


def likely_encoding(sample: bytes) -> str | None:
    """The encoding that the first bytes of a text seem to be in, if they are not UTF-8; None if nothing fits."""
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    zeros = [sample[i::2].count(0) / max(len(sample[i::2]), 1) for i in (0, 1)]
    wide = "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    if max(zeros) >= ZERO_SHARE and not _CONTROL.search(_decoded(sample, wide) or "\0"):
        return wide
    if _CONTROL.search(sample.decode("latin-1")):
        return None
    chinese = _decoded(sample, "gb18030")
    if chinese is not None and _chinese_share(chinese) >= CHINESE_SHARE:
        return "gb18030"
    return "cp1252" if _decodes(sample, "cp1252") else None


def binary_kind(sample: bytes) -> str | None:
    """What a file seems to be that is no text in any encoding; None of a text."""
    for start, kind in _BINARIES.items():
        if sample.startswith(start):
            return kind
    if likely_encoding(sample) is not None:
        return None
    share = sum(map(sample.count, range(32))) / max(len(sample), 1)
    return "no text in any encoding" if b"\0" in sample and (share > ZERO_SHARE or not _is_utf8(sample)) else None


def not_utf8(what: str, sample: bytes, where: str) -> HeedfulError:
    """The error that a file cannot be read as UTF-8, with what it seems to be instead."""
    kind = binary_kind(sample)
    if kind is not None:
        return HeedfulError("this is a binary file, not text", where=where, remedy=f"it looks like {kind}")
    likely = likely_encoding(sample)
    remedy = "convert the file to UTF-8 (iconv does it), or say what it is in with `encoding`"
    if likely is not None:
        remedy = f"it looks like {likely}: read it with `encoding` {likely}, or convert it to UTF-8 (iconv does it)"
    return HeedfulError(what, where=where, remedy=remedy)


def _is_utf8(sample: bytes) -> bool:
    return _decodes(sample, UTF8)


def _decodes(sample: bytes, encoding: str) -> bool:
    return _decoded(sample, encoding) is not None


def _decoded(sample: bytes, encoding: str) -> str | None:
    """A sample as text; its last character may be cut in half."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return None


def _chinese_share(text: str) -> float:
    beyond = [char for char in text if ord(char) > 127]
    return sum(map(_is_usual_chinese, beyond)) / max(len(beyond), 1)


def _is_usual_chinese(char: str) -> bool:
    """Whether it is of the 7,000 characters of GB2312; an accented letter before a plain one gives a rarer one."""
    return bool(_CHINESE.match(char)) and bool(char.encode("gb2312", "ignore"))
