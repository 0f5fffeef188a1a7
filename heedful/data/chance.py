"""Chance without state: random numbers and shuffles that are functions of a seed and of what they are for.

A number is the hash of its key (seed, purpose, example, position …) by the SplitMix64 finaliser: whoever asks, in
whatever order, gets the same. Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from heedful.data.shards import Array

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_ROUNDS = 6


def hashed(*key: ArrayLike) -> Array:
    """64 random bits for each key; the parts are whole numbers or arrays of them that fit together."""
    value: Array = np.zeros(1, np.uint64)
    for part in key:
        value = _mixed((value ^ np.asarray(part).astype(np.uint64)) + _STEP)
    return value


def uniform(*key: ArrayLike) -> Array:
    """A number from [0, 1) for each key."""
    numbers: Array = (hashed(*key) >> np.uint64(11)) * 2.0**-53
    return numbers


def below(limit: ArrayLike, *key: ArrayLike) -> Array:
    """A whole number from 0 … limit - 1 for each key; `limit` may be an array."""
    numbers: Array = (uniform(*key) * np.asarray(limit)).astype(np.int64)
    return numbers


def shuffled(places: Array, size: int, *key: ArrayLike) -> Array:
    """Where a shuffle of 0 … size - 1 puts each of `places`, computed for these alone.

    A Feistel network permutes the next power of four; what falls outside is sent through again until it is inside.
    """
    half = np.uint64(max(1, ((size - 1).bit_length() + 1) // 2))
    mask = np.uint64((1 << int(half)) - 1)
    result = places.astype(np.uint64)
    keys = [np.broadcast_to(hashed(*key, turn), result.shape) for turn in range(_ROUNDS)]
    outside = np.arange(len(result))
    while len(outside):
        left, right = result[outside] >> half, result[outside] & mask
        for round_key in keys:
            left, right = right, left ^ (_mixed(right ^ round_key[outside]) & mask)
        result[outside] = left << half | right
        outside = outside[result[outside] >= np.uint64(size)]
    return result.astype(np.int64)


def _mixed(value: Array) -> Array:
    value = (value ^ (value >> np.uint64(30))) * _MIX1
    value = (value ^ (value >> np.uint64(27))) * _MIX2
    mixed: Array = value ^ (value >> np.uint64(31))
    return mixed
