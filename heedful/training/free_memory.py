"""How much memory can still be had, by what the system tells of it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import torch

_CGROUP = Path("/sys/fs/cgroup")
_PROCESSES = Path("/proc")
_NAMES = {"": ("memory.max", "memory.current"), "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes")}


def available(device: str = "cpu") -> int | None:
    """The least of free memory, the address-space limit's rest and the container's, in bytes; None if none is known."""
    if (kind := torch.device(device).type) != "cpu":
        tell = getattr(torch.get_device_module(kind), "mem_get_info", None)
        return None if tell is None else int(tell(device)[0])
    known = [size for size in (_free(), _below_limit(), _in_container()) if size is not None]
    return max(min(known), 0) if known else None


def _free() -> int | None:
    if found := re.search(r"MemAvailable:\s+(\d+) kB", _text(_PROCESSES / "meminfo")):
        return int(found[1]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows; on macOS no such number
        return None


def _below_limit() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    used = _text(_PROCESSES / "self/statm").split()
    if limit == resource.RLIM_INFINITY or not used:
        return None
    return limit - int(used[0]) * resource.getpagesize()


def _in_container() -> int | None:
    """The least that a control group of this process, or one around it, leaves; in both versions of the interface."""
    left = []
    for line in _text(_PROCESSES / "self/cgroup").splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds in ("", "memory"):
            root = _CGROUP / kinds
            inner = root / path.lstrip("/")
            for group in [inner, *inner.parents[: len(inner.parts) - len(root.parts)], root]:
                left += _left_in(group, *_NAMES[kinds])
    return min(left, default=None)


def _left_in(group: Path, limit: str, usage: str) -> list[int]:
    most, used = (_text(group / name).strip() for name in (limit, usage))
    return [int(most) - int(used)] if most.isdigit() and used.isdigit() else []


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
