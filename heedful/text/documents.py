"""Streaming readers of text: lines, and documents made of lines.

A document is what stands between blank lines of a plain text, or one object of a JSON-lines file. Whatever ends in
`.gz` is unpacked on the way; `-` is standard input, SCHEME://… an address, and a `Stretch` some of a file.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from heedful.addresses import Address, place
from heedful.errors import HeedfulError, TextWarning
from heedful.text.encodings import SAMPLE, UTF8, binary_kind, current_encoding, likely_encoding, not_utf8
from heedful.text.rows import DataSource, Rows, raised
from heedful.text.stretch import Stretch
from heedful.text.table_look import noticing_tables

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FEWEST = 256  # bytes that show what a file is which happens to be UTF-8


def read_lines(path: str | Path) -> Iterator[str]:
    """The lines of a text file without their line ends, one at a time; a byte order mark at the start is dropped.

    They are UTF-8 unless `reading_as` says otherwise. A few zero bytes, which no text has, are let through and warned
    of.
    """
    zeros, first = 0, 0
    for number, line in enumerate(_decoded_lines(path), start=1):
        if "\0" in line:
            if not first:
                _refuse_binary(path, line)
            zeros, first = zeros + line.count("\0"), first or number
        yield line
    if zeros:
        remark = f"{zeros:,} zero bytes (NUL) in {_name(path)}, the first in line {first}: is this really text?"
        warnings.warn(remark, TextWarning, stacklevel=2)


def has_byte_order_mark(path: str | DataSource) -> bool:
    """Whether a file begins with the mark that `read_lines` drops; of a pipe nobody can say without reading it."""
    if isinstance(path, Rows) or not Path(path).is_file() or current_encoding() != UTF8:
        return False
    with _open(path) as stream:
        return stream.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK


def read_documents(path: str | Path, field: str = "text") -> Iterator[list[str]]:
    """The documents of a plain text or JSON-lines file, each as its lines without the blank ones."""
    documents = _json_documents(path, field) if is_json_lines(path) else _plain_documents(path)
    empty = True
    for document in documents:
        empty = False
        yield document
    if empty and not isinstance(path, Stretch):
        raise no_text(_name(path))


def no_text(where: object) -> HeedfulError:
    """The error that a file has no documents."""
    return HeedfulError("no text in this file", where=where, remedy="give a file that holds text")


def read_texts(path: str | Path, field: str = "text") -> Iterator[str]:
    """One text for each line of a plain file, blank ones included, or for each object of a JSON-lines file."""
    return _json_texts(path, field) if is_json_lines(path) else text_lines(path)


def text_lines(path: str | Path) -> Iterator[str]:
    """The lines of a file in which each is a text; that it looks like a table is warned of."""
    if isinstance(path, Stretch) and path.start:  # whoever has the first lines sees it
        return read_lines(path)
    return noticing_tables(read_lines(path), _name(path))


def count_texts(path: str | Path) -> int:
    """How many texts `read_texts` will give; the file is read once, but not parsed."""
    if is_json_lines(path):
        return sum(1 for line in read_lines(path) if line.strip())
    if current_encoding() != UTF8:
        return sum(1 for _ in read_lines(path))
    with _open(path) as stream:
        return sum(1 for _ in stream)


def read_objects(
    path: str | DataSource, on_bad: Callable[[HeedfulError], object] = raised
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSON-lines file, each after its place as file:line; blank lines are passed over.

    `on_bad` hears of a line that holds none, and the next ones follow if it does not raise.
    """
    if isinstance(path, Rows):
        yield from path.objects(on_bad)
        return
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            try:
                row = _object(line, path, number)
            except HeedfulError as error:
                on_bad(error)
                continue
            yield f"{_name(path)}:{number}", row


def parse_json(text: str, path: str | Path, line: int = 1) -> Any:
    """What JSON text says that begins at a line of a file; half a surrogate pair in it is refused."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f"{_name(path)}:{line + getattr(error, 'lineno', 1) - 1}"
        remedy = "fix the file at that place; in JSON lines, put one object on each line"
        raise HeedfulError(f"not valid JSON: {error}", where=where, remedy=remedy) from None
    if "\\ud" in text.lower() and not _is_whole(json.dumps(value, ensure_ascii=False)):
        where, remedy = f"{_name(path)}:{line}", "write the character as UTF-8"
        raise HeedfulError("half a surrogate pair in the text", where=where, remedy=remedy)
    return value


def is_json_lines(path: str | Path) -> bool:
    """Whether the name says JSON lines: `.jsonl` or `.jsonl.gz`."""
    return str(path).removesuffix(".gz").endswith(".jsonl")


def _plain_documents(path: str | Path) -> Iterator[list[str]]:
    document: list[str] = []
    for line in text_lines(path):
        if line.strip():
            document.append(line)
        elif document:
            yield document
            document = []
    if document:
        yield document


def _json_documents(path: str | Path, field: str) -> Iterator[list[str]]:
    for text in _json_texts(path, field):
        document = [part.removesuffix("\r") for part in text.split("\n") if part.strip()]
        if document:
            yield document


def _json_texts(path: str | Path, field: str) -> Iterator[str]:
    for where, row in read_objects(path):
        if not isinstance(row.get(field), str):
            what = f"no text under {field!r} in this line (it has: {', '.join(row)})"
            raise HeedfulError(what, where=where, remedy="name the field with `text`")
        yield row[field]


def _object(line: str, path: str | Path, number: int) -> dict[str, Any]:
    row = parse_json(line, path, number)
    if not isinstance(row, dict):
        what = f"no object in this line (it has: {type(row).__name__})"
        raise HeedfulError(what, where=f"{_name(path)}:{number}", remedy="put one JSON object on each line")
    return row


def _is_whole(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _decoded_lines(path: str | Path) -> Iterator[str]:
    encoding = current_encoding()
    with _open(path) as stream:
        if encoding == UTF8:
            for number, raw in enumerate(_raw_lines(path, stream), start=1):
                yield _decode(raw, path, number)
            return
        # Here a line does not end where a byte says so. Only "\n" ends one, whatever else Python takes for an end.
        lines, number = io.TextIOWrapper(stream, encoding, newline="\n"), 0
        try:
            for number, line in enumerate(lines, start=1):
                yield _without_end(line).removeprefix("\ufeff" if number == 1 else "")
        except UnicodeError as error:
            what, where = f"not {encoding}: {getattr(error, 'reason', error)}", f"{_name(path)}: after line {number:,}"
            raise HeedfulError(what, where=where, remedy="name another encoding, or none for UTF-8") from None
        finally:
            lines.detach()  # or it would close standard input


def _raw_lines(path: str | Path, stream: BinaryIO) -> Iterator[bytes]:
    lines = path.lines(stream, alone=is_json_lines(path)) if isinstance(path, Stretch) else iter(stream)
    if not (isinstance(path, Stretch) and path.start):  # further on the mark is a character of the text
        for first in islice(lines, 1):
            yield first.removeprefix(BYTE_ORDER_MARK)
    yield from lines


def _decode(raw: bytes, path: str | Path, number: int) -> str:
    try:
        return _without_end(raw.decode(UTF8))
    except UnicodeDecodeError as error:
        what = f"not UTF-8: byte 0x{raw[error.start]:02x} at column {error.start + 1}"
        raise not_utf8(what, _sample(path) or raw, f"{_name(path)}:{number}") from None


def _without_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _refuse_binary(path: str | Path, line: str) -> None:
    """Refuse what only happens to be UTF-8: a binary file, or text in which every other byte is zero."""
    sample = _sample(path) or line.encode()
    if (
        current_encoding() == UTF8
        and len(sample) >= FEWEST
        and (binary_kind(sample) or (likely_encoding(sample) or "").startswith("utf-"))
    ):
        raise not_utf8("not UTF-8: full of zero bytes", sample, _name(path))


def _sample(path: str | Path) -> bytes:
    """The first bytes of a file; none of what can be read only once."""
    if not Path(path).is_file():
        return b""
    with _open(path) as stream:
        return stream.read(SAMPLE)


def _name(path: str | Path) -> str:
    if isinstance(path, Stretch) and path.start:
        return f"{path} from byte {path.start:,} on"
    return "standard input" if str(path) == "-" else str(path)


@contextmanager
def _open(path: str | Path) -> Iterator[BinaryIO]:
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        with ExitStack() as files:
            stream = files.enter_context(_opened(place(path), path.opened_at if isinstance(path, Stretch) else 0))
            packed = str(path).endswith(".gz")
            yield cast(BinaryIO, files.enter_context(gzip.open(stream))) if packed else stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        what = f"broken gzip file: {error}"
        raise HeedfulError(what, where=_name(path), remedy="fetch or pack the file again") from error
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise HeedfulError(what, where=_name(path), remedy="check the name and the rights") from error


def _opened(where: Path | Address, start: int) -> BinaryIO:
    if isinstance(where, Address):
        return where.open(start)
    file = where.open("rb")
    if start:
        file.seek(start)
    return file
