"""A run computes on one device alone: everything is moved there, and a checkpoint goes on there and elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(kind: str, precision: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(__file__).with_name("on_stand_in.py")
    command = [sys.executable, str(program), kind, precision, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["pretraining", "classifier"])
def test_a_run_on_a_device(kind: str, precision: str, tmp_path: Path) -> None:
    done = run(kind, precision, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_tensor_that_a_model_makes_on_the_cpu_is_found(tmp_path: Path) -> None:
    done = run("stray", "float32", tmp_path)
    assert done.returncode == 1
    assert "on stand_in and on the CPU, such as one of shape (16,)" in done.stderr.splitlines()[-1]
