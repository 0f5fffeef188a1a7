"""The scripts of benchmarks/ as modules; they import each other by their bare names."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a script by its name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module
