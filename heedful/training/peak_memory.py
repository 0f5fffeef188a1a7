"""The most memory that this process has had."""

from __future__ import annotations

import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_memory() -> int | None:
    """Bytes, by what the system tells; None where it does not.

    Linux is asked for the peak since the program was started: what getrusage says begins with that of the program
    which started it.
    """
    if _STATUS.exists():
        lines = (line.split() for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return next((int(cells[1]) * 1024 for cells in lines), None)
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
