"""benchmarks/quickstart.py: each checkout's recipe runs that checkout's code, and its scores are found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

Script = Callable[[str], ModuleType]
SCORES = {
    "run": {"nsp_accuracy": 0.9, "mlm_accuracy": 0.6, "mlm_loss": 1.5},
    "classifier-pretrained": {"accuracy": 0.95},
    "tagger-pretrained": {"f1": 0.8, "precision": 0.7},
    "answerer-pretrained": {"exact": 0.85},
}


def test_a_checkout_is_run_by_its_own_code(script: Script, tmp_path: Path) -> None:
    checkout, place = tmp_path / "before", tmp_path / "scratch"
    (checkout / "heedful").mkdir(parents=True)
    (checkout / "heedful" / "__init__.py").touch()
    (checkout / "heedful" / "__main__.py").write_text("import sys; open(sys.argv[1], 'w').write(__file__)")
    (checkout / "recipes").mkdir()
    (checkout / "recipes" / "quickstart.sh").write_text('mkdir "$1" && heedful "$1/ran"\n')
    place.mkdir()
    assert script("quickstart").quickstart(checkout, place) > 0
    assert (place / "quickstart" / "ran").read_text() == str(checkout / "heedful" / "__main__.py")


def test_scores_have_a_column_each(script: Script, tmp_path: Path) -> None:
    for name, scores in SCORES.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").touch()
        (tmp_path / name / "scores.json").write_text(json.dumps(scores))
    module = script("quickstart")
    row = module.row("now", [61.0, 59.0, 90.0], module.reached(tmp_path))
    assert row == ["now", "61", "0.900", "0.600", "0.950", "0.800", "0.850"]
    assert module.NAMES == ["next sentence", "hidden words", "classifier", "tagger", "answerer"]
