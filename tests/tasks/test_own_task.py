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
    (tmp_path / "topics.py").write_text(source, encoding="utf-8")
    rows = ["cat\tthe cat", "dog\tthe dog", "cat dog\tthe cat sees the dog", "dog love\tlove the dog"] * 4
    (tmp_path / "train.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")

    def topics(*arguments: object) -> str:
        command = [sys.executable, "topics.py", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    files = ("--train", "train.tsv", "--dev", "train.tsv", "-o", "run")
    recipe = ("--epochs", 60, "--lr", "1e-3", "--batch-size", 4, "--dropout", 0)
    topics("finetune", "topics", "--model", tiny_folder, *files, *recipe)
    assert (
        json.loads(topics("evaluate", "run", "train.tsv", "--json"))["scores"]["f1"] > 0.8
    )  # always "cat dog" would have 0.71
    assert set(json.loads(topics("predict", "run", "the dog"))["probabilities"]) == {"cat", "dog", "love"}
