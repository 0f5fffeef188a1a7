"""Systems without fcntl, glibc, /proc or folders that open like files: what Linux has and others have not is hidden."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.file_lock import try_lock

# torch and numpy come first: they have ways of their own around what is missing.
HIDING = """
import ctypes, os, pathlib, shutil, sys
import numpy, torch

for name in ("fcntl", "resource", "msvcrt"):
    sys.modules[name] = None
for name in ("sysconf", "getloadavg", "sched_getaffinity", "O_DIRECTORY"):
    delattr(os, name)
shutil._use_fd_functions = False
load, open_file = ctypes.CDLL, os.open

def library(name, *rest, **named):
    if name == "libc.so.6":
        raise OSError("no such library")
    return load(name, *rest, **named)

def not_a_folder(path, flags, *rest, **named):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", str(path))
    return open_file(path, flags, *rest, **named)

ctypes.CDLL, os.open = library, not_a_folder

import heedful.training.free_memory as free_memory

free_memory._CGROUP = free_memory._PROCESSES = pathlib.Path("nowhere")
assert free_memory.available() is None
"""
RUN = """
import sys
from heedful.cli.main import cli

cli(sys.argv[1:], prog_name="heedful")
"""
PRETRAIN = "pretrain corpus --size tiny --phases 32:100% --budget 4steps --batch-size 4 --checkpoint-every 2 -o"


def heedful(command: str, folder: Path, before: str = "") -> str:
    arguments = [sys.executable, "-c", before + RUN, *command.split()]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_run_is_the_same_where_the_system_has_less(tmp_path: Path) -> None:
    for command in (
        "toy world --size small",
        "tokenizer train world/documents.en.txt -o tokenizer --vocab-size 300",
        "corpus build world/documents.en.txt -o corpus --tokenizer tokenizer --held-out 0.01",
    ):
        heedful(command, tmp_path)
    (tmp_path / "texts.txt").write_text("A dog.\nTwo dogs and a cat.\n", encoding="utf-8")
    found = []
    for name, before in (("here", ""), ("elsewhere", HIDING)):
        told = heedful(f"{PRETRAIN} {name}", tmp_path, before)
        assert ("is not known" in told) is bool(before)
        heedful(f"{PRETRAIN} {name} --resume", tmp_path, before)
        heedful(f"embed {name}/model texts.txt -o {name}.npy", tmp_path, before)
        files = (tmp_path / name / "model/model.safetensors", tmp_path / f"{name}.npy")
        found.append([hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
        left = [path.name for path in (tmp_path / name / "checkpoints").iterdir()]
        assert sorted(left) == ["step-000002", "step-000004"]
    assert found[0] == found[1]


def test_a_lock_is_one_process_s(tmp_path: Path) -> None:
    with (tmp_path / "a").open("a+") as one, (tmp_path / "a").open("a+") as other:
        assert try_lock(one) and not try_lock(other)


class Windows:
    """What msvcrt has of locks: a byte at the file's place belongs to one descriptor."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        self.locked: dict[tuple[int, int], int] = {}

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        assert (mode, count) == (self.LK_NBLCK, 1)
        place = os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR)
        if self.locked.setdefault(place, descriptor) != descriptor:
            raise PermissionError(13, "Permission denied")


def test_windows_has_its_own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Windows()
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    path = tmp_path / "a"
    path.write_text("1234")
    with path.open("a+") as one, path.open("a+") as other:
        one.seek(2)
        assert try_lock(one) and not try_lock(other)
        assert one.read() == "34" and path.stat().st_size == 4
    assert min(place for _, place in windows.locked) > 1 << 30  # where nobody reads


def test_without_any_locks_all_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fcntl", "msvcrt"):
        monkeypatch.setitem(sys.modules, name, None)
    with (tmp_path / "a").open("a+") as one, (tmp_path / "a").open("a+") as other:
        assert try_lock(one) and try_lock(other)
