"""What a process that trains asks of the processor and of the memory allocator."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Of glibc's mallopt: how much may lie free before it is given back, and how many blocks may be mapped one by one.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_NEVER = 2**31 - 1


def prepare_process() -> None:
    """Make training fast in a process that does nothing else; call it before torch starts its threads.

    Denormal numbers count as zero, because computing with them is slow; threads that exist already would not hear of
    it. And freed memory is kept: glibc gives large blocks back to the system, which must then fill every page of
    the same block with zeros again in the next step.
    """
    torch.set_flush_denormal(True)
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):  # another allocator, which does as it likes
        return
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, _NEVER)


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Count denormal numbers as zero within a block, in a process that has other things to do afterwards."""
    before = float(torch.tensor(1e-39) * 1) == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
