"""The task in docs/own-task.md works as the page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "own-task.md"


def test_the_task_of_the_page_trains_evaluates_and_predicts(tiny_folder: Path, tmp_path: Path) -> None:
    (source,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (tmp_path / "stars.py").write_text(source, encoding="utf-8")
    rows = ["1\tun cat", "1\tun dog", "2\tsees the dog", "2\tsees the cat", "3\tlove the dog", "3\tlove the cat"] * 4
    (tmp_path / "train.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")

    def stars(*arguments: object) -> str:
        command = [sys.executable, "stars.py", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    files = ("--train", "train.tsv", "--dev", "train.tsv", "-o", "run")
    recipe = ("--set", "sureness=0.4", "--epochs", 60, "--lr", "1e-3", "--batch-size", 4, "--dropout", 0)
    stars("finetune", "stars", "--model", tiny_folder, *files, *recipe)
    scores = json.loads(stars("evaluate", "run", "train.tsv", "--json"))["scores"]
    assert scores["distance"] < 0.3 and scores["accuracy"] > 0.7  # always 2 would have 0.67 and 0.33
    assert json.loads((tmp_path / "run" / "model" / "task.json").read_text())["sureness"] == 0.4
    assert json.loads(stars("predict", "run", "the dog"))["stars"] in ("1", "2", "3")
