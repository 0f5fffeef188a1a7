"""Scores in a JSON file: there as a whole, and a score that is not a number as null."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.atomic import atomic_path
from heedful.json_files import finite, write_json


def write_scores(path: Path, scores: Mapping[str, Any]) -> None:
    """Write scores, or mappings of them."""
    with atomic_path(path) as temporary:
        write_json(temporary, finite(scores))
