"""The small network and random batches of tests/faults/trainee.py, and the program that trains it in processes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def trainee() -> ModuleType:
    """tests/faults/trainee.py as a module."""
    path = Path(__file__).resolve().parents[1] / "faults" / "trainee.py"
    spec = importlib.util.spec_from_file_location("trainee", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["trainee"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def faults() -> ModuleType:
    """benchmarks/faults.py as a module."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "faults.py"
    spec = importlib.util.spec_from_file_location("faults_of_ranks", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
