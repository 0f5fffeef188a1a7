"""benchmarks/sentence_vectors.py: what is chosen is chosen on other pairs than those that are reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

Script = Callable[[str], ModuleType]


def test_each_field_is_tried_from_the_best_so_far_and_lines_takes_what_was_chosen(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, asked = script("sentence_vectors"), []
    monkeypatch.setattr("sys.argv", ["benchmarks/sentence_vectors.py"])

    def score(self: Any, settings: dict[str, Any], lines: int, scored: str) -> float:
        asked.append((dict(settings), lines, scored))
        return {3e-4: 0.1, 1e-4: 0.05}.get(settings["learning_rate"], 0) + settings["dropout"] * (
            0.3 - settings["dropout"]
        )

    monkeypatch.setattr(module.Bench, "score", score)
    assert module.chosen(tmp_path, "stsb/dev.tsv") == (
        module.START,
        "The settings are those that choosing would start from: none of them was chosen.",
    )
    module.choose(module.Bench(tmp_path, tmp_path), tmp_path, "stsb/train.tsv", 10)
    found = json.loads((tmp_path / module.TRIALS).read_text(encoding="utf-8"))
    assert {scored for _, _, scored in asked} == {"stsb/train.tsv"}
    best, told = module.chosen(tmp_path, "stsb/dev.tsv")
    assert (
        best == {**module.START, "learning_rate": 3e-4} and "chosen on stsb/train.tsv" in told
    )  # 0.1 and 0.2 of dropout do as well
    assert all(settings["learning_rate"] == 3e-4 for settings, _, _ in asked[3:])
    assert [row[2] for row in found["tables"][0]["rows"]][:3] == ["the start", "", "kept"]
    asked.clear()
    for name in ("random_model", "judged", "word_vectors", "correlation"):
        monkeypatch.setattr(module, name, lambda *_: 0.5)
    module.measure(module.Bench(tmp_path, tmp_path), tmp_path, "stsb/dev.tsv", 20)
    assert asked == [(best, 20, "stsb/dev.tsv")]
    with pytest.raises(SystemExit, match="chosen on stsb/train"):
        module.measure(module.Bench(tmp_path, tmp_path), tmp_path, "stsb/train.tsv", 20)


def test_vectors_agree_with_people_who_judge_by_the_same_words(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pairs.tsv").write_text(
        'relatedness\tsentence1\tsentence2\n5\ta b\t"a b\n3\ta b\ta c\n1\ta b\tc\n', encoding="utf-8"
    )
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))

    def letters(texts: list[str]) -> Any:
        return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=np.float32)

    module = script("judged_vectors")
    assert module.correlation(letters, "pairs.tsv") == 1.0
    assert module.correlation(lambda texts: letters(["c" if text == "c" else "a" for text in texts]), "pairs.tsv") < 1
