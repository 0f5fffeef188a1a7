"""The experiments of benchmarks/faults.py, and a run left in peace to compare with."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def faults() -> ModuleType:
    """benchmarks/faults.py as a module."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "faults.py"
    spec = importlib.util.spec_from_file_location("faults", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def peace(faults: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    run = tmp_path_factory.mktemp("faults") / "peace"
    done = faults.train(run)
    assert done.returncode == 0, done.stderr
    return run
