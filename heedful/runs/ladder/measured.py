"""What has been measured of a model, in a file that is written after each measurement.

An entry says of what it was measured. It is taken again only if that is another thing now, or if it failed.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError
from heedful.json_files import read_json
from heedful.runs.score_file import write_scores

FILE = "measured.json"
REASON, RESULT = "reason", "result"
PROCESS = "process"  # the entry that tells how the process of a model came to grief


class Measured:
    """The measurements of one model by their names."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.entries: dict[str, Any] = read_json(self.path) if self.path.exists() else {}

    def take(self, name: str, of: Mapping[str, Any], measure: Callable[[], Mapping[str, Any]]) -> bool:
        """Measure, unless it was done; whatever goes wrong is kept as the reason. Gives whether there is a result."""
        of = json.loads(json.dumps(of))
        known = self.entries.get(name, {})
        if known.get("of") == of and RESULT in known:
            return True
        try:
            found: dict[str, Any] = {RESULT: measure()}
        except HeedfulError as error:
            found = {REASON: str(error)}
        except Exception as error:  # of a model that fails the others must not suffer
            traceback.print_exc(file=sys.stderr)
            found = {REASON: f"{type(error).__name__}: {error}"}
        self._keep(name, {"of": of, **found})
        return RESULT in found

    def fail(self, reason: str) -> None:
        """Keep why the process ended before its time."""
        self._keep(PROCESS, {REASON: reason})

    def begin(self) -> None:
        """Forget how an earlier process ended."""
        if self.entries.pop(PROCESS, None):
            write_scores(self.path, self.entries)

    def told(self, name: str) -> dict[str, Any] | None:
        """The result of a measurement, or its reason; None if it was not taken."""
        entry = self.entries.get(name)
        if entry is None:
            return None
        result: dict[str, Any] = entry[RESULT] if RESULT in entry else {REASON: entry[REASON]}
        return result

    def _keep(self, name: str, entry: Mapping[str, Any]) -> None:
        self.entries[name] = entry
        write_scores(self.path, self.entries)
