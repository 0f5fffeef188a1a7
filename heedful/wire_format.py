"""Protocol buffers and their variable-length integers, as far as is needed here; ValueError if unsound."""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(data: bytes, position: int) -> tuple[int, int]:
    """The integer at a position, seven bits a byte and the lowest first, and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise ValueError("it ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a number is too long")


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message in their order: the number of the field, and its integer or its bytes."""
    position = 0
    while position < len(message):
        tag, position = varint(message, position)
        kind = tag & 7
        if kind == _VARINT:
            value, position = varint(message, position)
            yield tag >> 3, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if kind == _BYTES:
            size, position = varint(message, position)
        if size is None:
            raise ValueError(f"a field is of the unknown wire type {kind}")
        content = message[position : position + size]
        position += size
        if len(content) < size:
            raise ValueError("it ends within a field")
        yield tag >> 3, content if kind == _BYTES else int.from_bytes(content, "little")
