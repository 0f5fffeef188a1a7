"""A lock on an open file that other processes respect, by what the system has for it."""

from __future__ import annotations

import os
from typing import IO, Any

# Windows lets nobody else read what is locked: therefore a byte far behind all that is read.
_FAR = (1 << 31) - 2


def try_lock(file: IO[Any]) -> bool:
    """Whether this process has the lock on `file` now, until it is closed; where there are no locks it always has."""
    try:
        _lock(file.fileno())
    except (BlockingIOError, PermissionError):
        return False
    return True


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:
        _lock_on_windows(descriptor)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_on_windows(descriptor: int) -> None:
    try:
        import msvcrt
    except ImportError:
        return
    place = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, _FAR, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    finally:
        os.lseek(descriptor, place, os.SEEK_SET)
