"""CRC-32C (Castagnoli), the checksum in TensorFlow's checkpoints.

With the `google-crc32c` library (extra `tensorflow1`) it costs next to nothing. Without it numpy folds the message: the
checksum is linear over bits, so a word that stands n bytes before another can be moved over these n bytes by a table,
and added to it (xor). Neighbours are added in pairs, then pairs of pairs, until one word is left. That is slower than
the library by an order of magnitude.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

try:
    import google_crc32c as _library
except ImportError:
    _library = None

Words = NDArray[np.uint32]

_POLYNOMIAL = 0x82F63B78  # bits reversed
_ALL = 0xFFFFFFFF
_CHUNK = 1 << 20


def crc32c(data: memoryview) -> int:
    """The checksum of some bytes."""
    # The library is also shipped without its compiled part, and is then slower than the folding here.
    compiled = _library is not None and _library.implementation == "c"
    return _by_library(data) if compiled else folded_crc32c(data)


def masked(checksum: int) -> int:
    """A checksum as it is stored: a checksum of bytes that hold their own checksum would be weak."""
    return (((checksum >> 15) | (checksum << 17)) + 0xA282EAD8) & _ALL


def folded_crc32c(data: memoryview) -> int:
    """The checksum by numpy alone."""
    register = _ALL
    for start in range(0, len(data), _CHUNK):
        register = _advanced(register, data[start : start + _CHUNK])
    return register ^ _ALL


def _by_library(data: memoryview) -> int:
    value = 0
    for start in range(0, len(data), _CHUNK):
        value = _library.extend(value, bytes(data[start : start + _CHUNK]))
    return value


def _advanced(register: int, data: memoryview) -> int:
    """The register after some more bytes."""
    if len(data) < 4:
        for byte in data:
            register = _after_zeros(register ^ byte, 1)
        return register
    padding = -len(data) % 4  # zeros in front change nothing
    message = np.zeros(padding + len(data), np.uint8)
    message[padding:] = np.frombuffer(data, np.uint8)
    message[padding : padding + 4] ^= np.frombuffer(register.to_bytes(4, "little"), np.uint8)
    return _fold(message.view("<u4").astype(np.uint32, copy=False))


def _fold(words: Words) -> int:
    level = 0
    while len(words) > 1:
        if len(words) % 2:
            words = np.concatenate((np.zeros(1, np.uint32), words))
        words = _moved(words[0::2], level) ^ words[1::2]
        level += 1
    return int(_moved(words, 0)[0])


def _moved(words: Words, level: int) -> Words:
    """What becomes of each word when 2 ** level words of zeros follow it."""
    low, high = _tables(level)
    return np.take(low, words & 0xFFFF) ^ np.take(high, words >> 16)


@cache
def _tables(level: int) -> tuple[Words, Words]:
    """What becomes of every lower and of every upper half of a word."""
    if level == 0:
        bits = np.array([_after_zeros(1 << bit, 4) for bit in range(32)], np.uint32)
    else:
        single = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))
        bits = _moved(_moved(single, level - 1), level - 1)
    return _sums(bits[:16]), _sums(bits[16:])


def _sums(bits: Words) -> Words:
    """The sum (xor) over the bits that are set in 0, 1, 2, … 65535."""
    table = np.zeros(1, np.uint32)
    for bit in bits:
        table = np.concatenate((table, table ^ bit))
    return table


def _after_zeros(register: int, count: int) -> int:
    for _ in range(8 * count):
        register = (register >> 1) ^ (_POLYNOMIAL if register & 1 else 0)
    return register
