"""Freed memory goes back to the system, so that a long run does not seem to grow."""

from __future__ import annotations

import ctypes


def give_back_freed_memory() -> None:
    """Ask glibc for what it keeps of freed memory; elsewhere the allocator does as it likes.

    Batches differ in size, and what they leave behind in each thread's heap fits the next one badly.
    """
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return
