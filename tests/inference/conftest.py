"""Inference shares its batches out among workers; so that there are several, torch has more than one thread here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """Two threads of torch, hence two workers in a pool; the number is put back, whatever a test makes of it."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
