"""`heedful toy` from the outside."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.toy.tasks import TASKS


def heedful(*arguments: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "heedful", "toy", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)


def digest(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path: Path) -> None:
    for name, seed, hash_seed in (("a", "7", "1"), ("b", "7", "2"), ("c", "8", "1")):
        done = heedful(str(tmp_path / name), "--seed", seed, "--size", "small", hash_seed=hash_seed)
        assert done.returncode == 0, done.stderr
    a, b, c = (digest(tmp_path / name) for name in "abc")
    assert len(a) == 36
    assert a == b
    assert all(a[name] != c[name] for name in a)


def test_a_folder_with_something_in_it_is_left_alone_unless_asked(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    refused = heedful(str(tmp_path), "--size", "small")
    assert refused.returncode == 2
    assert "not empty" in refused.stderr and "remedy" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert heedful(str(tmp_path), "--size", "small", "--overwrite").returncode == 0
    assert (tmp_path / "documents.en.txt").exists()


def test_baselines_are_printed_without_writing(tmp_path: Path) -> None:
    done = heedful("--baselines", "--size", "small")
    assert done.returncode == 0, done.stderr
    for task in (*TASKS, "next sentence"):
        assert task in done.stdout
    assert done.stdout.count("100.0%") == 15


@pytest.mark.parametrize("arguments", [[], ["--size", "huge"], ["--seed", "-1", "out"]])
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    done = heedful(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_help_has_examples_and_needs_no_torch() -> None:
    assert "Examples:" in heedful("--help").stdout
    code = "import heedful.toy.baselines, heedful.cli.toy, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
