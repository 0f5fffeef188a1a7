"""A writer of TensorFlow checkpoints for the tests; TensorFlow's own reader has accepted what it makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch

from heedful.checkpoints.crc32c import crc32c, masked

TYPES = {
    torch.float32: 1, torch.float64: 2, torch.int32: 3, torch.int64: 9, torch.bfloat16: 14, torch.float16: 19,
}  # fmt: skip
SPELLED_OUT_EVERY = 16
SMALL_BLOCK = 256  # bytes; TensorFlow's are 4096 and more, but many blocks are a better test


def write_bundle(
    prefix: Path,
    tensors: Mapping[str, torch.Tensor],
    shards: int = 1,
    big_endian: bool = False,
    more: Mapping[str, bytes] | None = None,
    compression: int = 0,
) -> Path:
    """Write PREFIX.index and its data files, tensors by turns into the shards; `more` replaces or adds entries."""
    data = [bytearray() for _ in range(shards)]
    rows = {"": field(1, shards) + (field(2, 1) if big_endian else b"") + field(3, field(1, 1))}
    for number, (name, tensor) in enumerate(sorted(tensors.items())):
        shard = number % shards
        content = raw_bytes(tensor, big_endian)
        rows[name] = entry(TYPES[tensor.dtype], tensor.shape, shard, len(data[shard]), content)
        data[shard] += content
    for number, content in enumerate(data):
        prefix.with_name(f"{prefix.name}.data-{number:05d}-of-{shards:05d}").write_bytes(content)
    index = prefix.with_name(f"{prefix.name}.index")
    write_table(index, {name.encode(): row for name, row in {**rows, **(more or {})}.items()}, compression)
    return index


def entry(kind: int, shape: Sequence[int], shard: int, offset: int, content: bytes) -> bytes:
    """BundleEntryProto."""
    dimensions = b"".join(field(2, field(1, size)) for size in shape)
    places = field(3, shard) + field(4, offset) + field(5, len(content))
    checksum = bytes([6 << 3 | 5]) + masked(crc32c(memoryview(content))).to_bytes(4, "little")
    return field(1, kind) + field(2, dimensions) + places + checksum


def raw_bytes(tensor: torch.Tensor, big_endian: bool) -> bytes:
    """The numbers as they lie in the file."""
    raw = tensor.contiguous().view(-1).view(torch.uint8)
    if big_endian:
        raw = raw.view(-1, tensor.element_size()).flip(1).flatten()
    return raw.numpy().tobytes()


def write_table(path: Path, rows: Mapping[bytes, bytes], compression: int = 0) -> None:
    """Write sorted rows as blocks, the block of blocks and the footer."""
    file, handles = bytearray(), []
    for block in blocks(sorted(rows.items())):
        handles.append((block[-1][0], append_block(file, block, compression)))
    nothing = append_block(file, [], 0)
    footer = nothing + append_block(file, handles, 0)
    path.write_bytes(file + footer.ljust(40, b"\0") + 0xDB4775248B80FB57.to_bytes(8, "little"))


def blocks(rows: Iterable[tuple[bytes, bytes]]) -> list[list[tuple[bytes, bytes]]]:
    """Rows by blocks of a few hundred bytes."""
    done: list[list[tuple[bytes, bytes]]] = [[]]
    for row in rows:
        if sum(len(key) + len(value) for key, value in done[-1]) > SMALL_BLOCK:
            done.append([])
        done[-1].append(row)
    return done


def append_block(file: bytearray, rows: Sequence[tuple[bytes, bytes]], compression: int) -> bytes:
    """Append a block with its checksum; where it lies now."""
    content, spelled_out, before = bytearray(), [], b""
    for number, (key, value) in enumerate(rows):
        shared = next(
            (i for i, (a, b) in enumerate(zip(before, key, strict=False)) if a != b), min(len(before), len(key))
        )
        if number % SPELLED_OUT_EVERY == 0:
            shared = 0
            spelled_out.append(len(content))
        content += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        before = key
    for place in (*(spelled_out or [0]), max(len(spelled_out), 1)):
        content += place.to_bytes(4, "little")
    start, size = len(file), len(content)
    content.append(compression)
    file += content + masked(crc32c(memoryview(content))).to_bytes(4, "little")
    return varint(start) + varint(size)


def field(number: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
