"""A process that trains keeps the memory it has freed."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

KEPT = """
import torch
from heedful.training.process import prepare_process

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024

{prepare}
before = resident()
block = torch.ones(64 * 2**20 // 4)
del block
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc: other allocators do as they like")
def test_freed_memory_is_there_for_the_next_step() -> None:
    megabytes = {}
    for prepare in ("prepare_process()", ""):
        code = KEPT.format(prepare=prepare)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        megabytes[prepare] = int(done.stdout)
    assert megabytes["prepare_process()"] > 60, "the block is kept"
    assert megabytes[""] < 30, "the block went back to the system"
