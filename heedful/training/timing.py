"""Where the time of a run goes: every moment belongs to exactly one part."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from heedful.atomic import atomic_path
from heedful.json_files import read_json, write_json

PARTS = ("tokenise", "start", "wait", "forward", "backward", "optimiser", "evaluation", "checkpoint", "other")


class Clock:
    """Adds the time since the last `lap` to a part; `wall` is measured apart, from the first moment to now."""

    def __init__(self) -> None:
        self.parts = dict.fromkeys(PARTS, 0.0)
        self._earlier = 0.0
        self._sessions = 1
        self._began = self._last = time.perf_counter()

    def lap(self, part: str) -> float:
        """What has happened since the last lap was `part`; gives its seconds."""
        now = time.perf_counter()
        passed, self._last = now - self._last, now
        self.parts[part] += passed
        return passed

    def add(self, part: str, seconds: float) -> None:
        """Count time that was spent before this clock was started, such as tokenising."""
        self.parts[part] += seconds
        self._earlier += seconds

    @property
    def wall(self) -> float:
        """All seconds, those of earlier sessions too."""
        return self._earlier + time.perf_counter() - self._began

    def resume(self, path: Path) -> None:
        """Go on from what an earlier session wrote."""
        if path.exists():
            earlier = read_json(path)
            self._sessions += int(earlier["sessions"])
            for part, seconds in earlier["parts"].items():
                self.add(part, seconds)

    def write(self, path: Path, background: float, computed_on: Mapping[str, str] | None = None) -> None:
        """Write parts and wall time in seconds, and what they were measured on; `background` is other threads' work."""
        self.lap("other")
        told = {"parts": self.parts, "wall": self.wall, "background": background, "sessions": self._sessions}
        with atomic_path(path) as file:
            write_json(file, {**told, **(computed_on or {})})
