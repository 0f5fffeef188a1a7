"""The README tells the truth: its commands run, in order, in one folder; the two languages show the same ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def without_comments(block: str) -> list[str]:
    return [re.sub(r'\s*(#.*|""".*""")$', "", line) for line in block.splitlines()]


# The same commands on less data and for less time.
SMALLER = {
    "toy world\n": "toy world --size small\n",
    "--budget 60s": "--budget 2s",
    "--epochs 1 ": "--epochs 0.2 ",
    "500steps": "10steps",
}


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    shell = "set -eu\n" + "".join(blocks("README.md", "sh"))
    for written, smaller in SMALLER.items():
        assert written in shell
        shell = shell.replace(written, smaller)
    python = "\n".join(blocks("README.md", "python"))
    for command in (["sh", "-c", shell], [sys.executable, "-c", python]):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "vectors.npy").exists()


def test_both_languages_show_the_same_commands() -> None:
    assert blocks("README.md", "sh") == blocks("README.zh-CN.md", "sh")
    ours, theirs = (map(without_comments, blocks(name, "python")) for name in ("README.md", "README.zh-CN.md"))
    assert list(ours) == list(theirs)


def test_the_links_of_the_readmes_lead_somewhere() -> None:
    for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md"):
        links = re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text(encoding="utf-8"))
        assert links and not [link for link in links if not (ROOT / link).exists()], name
