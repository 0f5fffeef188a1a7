"""A batch that does not fit into memory is computed in halves; a single text that does not fit is told by its size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from heedful.errors import HeedfulError
from heedful.training.memory import is_out_of_memory

T = TypeVar("T")


def in_halves(compute: Callable[[list[int]], list[T]], batch: list[int], lengths: Sequence[int]) -> list[T]:
    """What `compute` gives for the texts of a batch, in one go or in as many parts as it takes."""
    try:
        return compute(batch)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        if len(batch) == 1:
            tokens = lengths[batch[0]]
            raise HeedfulError(
                f"not enough memory for a single text of {tokens} tokens",
                remedy=f"cut texts by a `max_length` of {max(1, tokens // 2)}, or use a smaller model",
            ) from error
    half = len(batch) // 2
    return in_halves(compute, batch[:half], lengths) + in_halves(compute, batch[half:], lengths)
