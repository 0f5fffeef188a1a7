"""benchmarks/pretrain_recipe.py: it keeps the best value of each factor, and never does a run twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

LOSSES = {"1e-3": 5.0, "5e-4": 5.5, "1.5e-3": 4.75, "2e-3": 4.5, "3e-3": 6.0}


def test_the_best_of_each_factor_is_kept_and_nothing_is_done_twice(
    script: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, asked = script("pretrain_recipe"), []

    def trained(trial: Any, corpus: Path, keep: Path) -> Any:
        asked.append(trial.options)
        if trial.options["pairs"] == "nsp":
            return replace(trial, reason="no such file")
        return replace(trial, loss=LOSSES[trial.options["lr"]] + (trial.options["pairs"] == "sop"))

    monkeypatch.setattr(module, "trained", trained)
    begin = module.Trial("", "", "en", "mini", 1.0, 0, module.BEST)

    def search() -> Any:
        bench = module.Bench(tmp_path, tmp_path, tmp_path / "out.json")
        return bench.search(["rate", "pairs", "masked:0.3"], [0], begin)

    assert (search()["lr"], search()["pairs"]) == ("2e-3", "none")
    told = [(options["lr"], options["pairs"]) for options in asked]
    assert told == [(rate, "none") for rate in LOSSES] + [("2e-3", "nsp"), ("2e-3", "sop")]
    rows = json.loads((tmp_path / "out.json").read_text())["tables"][0]["rows"]
    assert [row[4] for row in rows] == [5.0, 5.5, 4.75, 4.5, 6.0, "no such file", 5.5]
