"""A memory cgroup, as containers have them: its limit is seen, and a run that it kills goes on afterwards."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file

GROUPS = Path("/sys/fs/cgroup/memory")


@pytest.fixture
def group() -> Iterator[Path]:
    """A memory cgroup of our own."""
    place = GROUPS / f"heedful-test-{os.getpid()}"
    try:
        place.mkdir()
    except OSError:
        pytest.skip("needs a memory cgroup that may be divided")
    yield place
    place.rmdir()


def test_its_limit_is_told_and_a_run_that_it_kills_goes_on_afterwards(
    group: Path, faults: ModuleType, peace: Path, tmp_path: Path
) -> None:
    (group / "memory.limit_in_bytes").write_text(str(1_000_000_000))
    run, told = tmp_path / "run", ("--group", str(group))
    done = faults.train(run, *told, "--take", "25", "4000000000")
    assert done.returncode == -9, done.stderr  # the kernel kills who takes too much
    free = re.search(r"([0-9.]+) (MB|GB) are free", done.stdout)
    assert free and float(free[1]) * {"MB": 1e6, "GB": 1e9}[free[2]] < 1e9
    assert faults.train(run, *told, "--resume").returncode == 0
    ours, theirs = (load_file(r / "checkpoints/step-000040/weights/model.safetensors") for r in (run, peace))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
