"""TensorFlow's table format, in which a checkpoint's index is written: sorted keys and their values in blocks.

block:   entries, the places where entries spell their key out, their number; one byte for the compression; checksum
entry:   bytes shared with the key before, further bytes of the key, bytes of the value; then these bytes
footer:  where a block without use here lies, where the block of blocks lies; filled up to 40 bytes; magic number
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heedful.checkpoints.crc32c import crc32c, masked
from heedful.checkpoints.stored_tensor import FETCH_AGAIN
from heedful.errors import HeedfulError
from heedful.wire_format import varint

_MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")
_FOOTER = 48
_TRAILER = 5  # the compression and the checksum after a block
_LARGEST = 100_000_000  # bytes; the index of a model with a thousand variables has about 50,000
_COMPRESSIONS = {1: "snappy"}


def read_table(path: Path) -> dict[bytes, bytes]:
    """All keys and values of a table, every block of it checked against its checksum."""
    with unsound_as_error(path):
        content = _content(path)
        if len(content) < _FOOTER or content[-8:] != _MAGIC:
            raise ValueError("it does not end as a table does")
        _, _, position = _handle(content, len(content) - _FOOTER)
        start, size, _ = _handle(content, position)
        table: dict[bytes, bytes] = {}
        for _, handle in _entries(_block(content, start, size)):
            start, size, _ = _handle(handle, 0)
            table.update(_entries(_block(content, start, size)))
        return table


@contextmanager
def unsound_as_error(path: Path) -> Iterator[None]:
    """Tell the user of a ValueError that the parsing of a file raises."""
    try:
        yield
    except ValueError as error:
        raise HeedfulError(f"not a sound checkpoint index: {error}", where=path, remedy=FETCH_AGAIN) from error


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError(f"it has more than {_LARGEST} bytes")
        return path.read_bytes()
    except OSError as error:
        raise HeedfulError(f"cannot read: {error}", where=path, remedy="see that it is a file you may read") from error


def _handle(data: bytes, position: int) -> tuple[int, int, int]:
    """Where a block starts and its size, and the position after these two numbers."""
    start, position = varint(data, position)
    size, position = varint(data, position)
    return start, size, position


def _block(content: bytes, start: int, size: int) -> bytes:
    """The entries of a block, without what follows them."""
    end = start + size
    if end + _TRAILER > len(content) - _FOOTER or size < 4:
        raise ValueError("a block lies outside of the file")
    stored = int.from_bytes(content[end + 1 : end + _TRAILER], "little")
    if masked(crc32c(memoryview(content)[start : end + 1])) != stored:
        raise ValueError(f"the checksum of the block at byte {start} is wrong")
    compression = content[end]
    if compression:
        raise ValueError(f"its blocks are compressed ({_COMPRESSIONS.get(compression, compression)}): not supported")
    spelled_out = int.from_bytes(content[end - 4 : end], "little")
    entries = size - 4 - 4 * spelled_out
    if entries < 0:
        raise ValueError(f"the block at byte {start} is shorter than it says")
    return content[start : start + entries]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    key, position = b"", 0
    while position < len(block):
        shared, position = varint(block, position)
        further, position = varint(block, position)
        size, position = varint(block, position)
        value_at, end = position + further, position + further + size
        if shared > len(key) or end > len(block):
            raise ValueError("an entry is longer than its block")
        key = key[:shared] + block[position:value_at]
        yield key, block[value_at:end]
        position = end
