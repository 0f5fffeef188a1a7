"""docs/python.md tells the truth: its code runs as one script, and the Chinese page shows the same."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
# The same calls on less data and for less time.
SMALLER = {
    'SIZES["normal"]': 'SIZES["small"]',
    '"600steps"': '"4steps"',
    '"60steps"': '"4steps"',
    "epochs=3,": "epochs=0.2,",
    "epochs=4,": "epochs=0.4,",
    "epochs=1,": "epochs=0.1,",
    "vocab_size=2000": "vocab_size=300",
    "batch_size=64": "batch_size=8",
}


def code(name: str) -> str:
    """All that is executed, as one script."""
    text = (DOCS / name).read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


def indented(name: str) -> list[str]:
    """What is shown without being executed, and the lines of the script that are indented."""
    return [line for line in (DOCS / name).read_text(encoding="utf-8").splitlines() if line.startswith("    ")]


def headings(name: str) -> list[int]:
    return [len(line.split()[0]) for line in (DOCS / name).read_text("utf-8").splitlines() if line.startswith("#")]


def test_the_code_of_the_page_runs(tmp_path: Path) -> None:
    script = code("python.md")
    for written, smaller in SMALLER.items():
        assert written in script
        script = script.replace(written, smaller)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told = done.stdout
    assert "did you mean 'epochs'?" in told and "(10, 128)" in told and "best, kept" in told
    assert "finished after" in told and "'bleu'" in told
    assert done.stderr == ""  # nobody watches


def test_the_chinese_page_shows_the_same_code() -> None:
    assert code("python.md") == code("python.zh-CN.md")
    assert indented("python.md") == indented("python.zh-CN.md")
    assert headings("python.md") == headings("python.zh-CN.md")
