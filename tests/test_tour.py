"""The tour's commands run, in order, in one folder, and the places in the source that it names are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")


def test_the_commands_of_the_tour_run(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    shell = "set -eu\n" + "".join(re.findall(r"^```sh\n(.*?)^```$", TOUR, re.DOTALL | re.MULTILINE))
    shell = re.sub(r"\b[234]0steps", "4steps", shell)  # the same commands for less time
    done = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "tour-looks.html").exists() and (tmp_path / "tour-sentiment" / "model").is_dir()


def test_the_files_and_names_of_the_tour_are_there() -> None:
    files = set(re.findall(r"`((?:heedful|benchmarks)/[\w/]+\.py)", TOUR))
    assert len(files) > 15 and not [file for file in files if not (ROOT / file).is_file()]
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "heedful").rglob("*.py"))
    names = set(re.findall(r"`([A-Za-z_][\w.]*)`", TOUR)) - {"c"}
    assert len(names) > 8
    assert not [name for name in names if not re.search(rf"(class|def) {name.rpartition('.')[2]}\b", source)]
