"""docs/results.md says what the measurements say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "docs" / "results").glob("*.json"))


def test_the_page_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "report.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_measurement_says_what_how_when_and_where(file: Path) -> None:
    found = json.loads(file.read_text(encoding="utf-8"))
    assert all(found.get(key) for key in ("what", "command", "date", "machine"))
    for table in found.get("tables", ()):
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}
    script = next(word for word in found["command"].split() if word.startswith("benchmarks/"))
    assert (ROOT / script).is_file()
