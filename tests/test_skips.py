"""A test is skipped for want of an optional part only; what the extra `dev` installs must be there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
OPTIONAL = """
import pytest

@pytest.mark.skipif(True, reason="needs a GPU")
def test_marked(): pass

def test_called(): pytest.skip("needs $HEEDFUL_DATA with a corpus in it")

@pytest.mark.xfail
def test_known(): assert False
"""
UNNAMED = """
import pytest

@pytest.mark.skip(reason="slow")
def test_marked(): pass

@pytest.fixture
def part(): pytest.skip()
def test_in_a_fixture(part): pass

def test_called(): pytest.skip("needs a GPUX")
def test_module(): pytest.importorskip("no_such_module")
"""
WHOLE_FILE = "import pytest\npytest.importorskip('no_such_module')\ndef test_it(): pass\n"


def test_only_optional_parts_may_be_missing(tmp_path: Path) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    for name, text in {"optional": OPTIONAL, "unnamed": UNNAMED, "whole_file": WHOLE_FILE}.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "--rootdir", ".", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "2 failed, 2 skipped, 1 xfailed, 3 errors" in done.stdout, done.stdout
    assert "ERROR collecting test_whole_file.py" in done.stdout
