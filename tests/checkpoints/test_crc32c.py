from __future__ import annotations

import random

import pytest

from heedful.checkpoints.crc32c import crc32c, folded_crc32c, masked

# RFC 3720, B.4.
PUBLISHED = {
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
    bytes(range(31, -1, -1)): 0x113FDB5C,
    b"123456789": 0xE3069283,
    b"": 0,
}


def bit_by_bit(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


@pytest.mark.parametrize("content", PUBLISHED)
def test_published_checksums(content: bytes) -> None:
    assert crc32c(memoryview(content)) == folded_crc32c(memoryview(content)) == PUBLISHED[content]


def test_every_short_length() -> None:
    content = random.Random(0).randbytes(300)
    for length in range(300):
        assert folded_crc32c(memoryview(content)[:length]) == bit_by_bit(content[:length]), length


@pytest.mark.parametrize("beyond", [0, 1, 3, 4, 77])
def test_chunks_are_joined(beyond: int, monkeypatch: pytest.MonkeyPatch) -> None:
    content = random.Random(1).randbytes(4096 + beyond)
    monkeypatch.setattr("heedful.checkpoints.crc32c._CHUNK", 1024)
    assert crc32c(memoryview(content)) == folded_crc32c(memoryview(content)) == bit_by_bit(content)


def test_masked_as_leveldb_masks() -> None:
    assert masked(0) == 0xA282EAD8
    assert masked(0xFFFFFFFF) == 0xA282EAD7
    assert masked(0x00008000) == 0xA282EAD9
