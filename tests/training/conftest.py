"""The small network and random batches of tests/faults/trainee.py."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other are slow on a busy machine, and these networks are small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


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
