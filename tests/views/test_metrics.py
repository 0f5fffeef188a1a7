"""What is found in a metrics.jsonl."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from heedful.errors import HeedfulError
from heedful.training.journal import Journal
from heedful.views.metrics import read_metrics


def test_what_the_journal_writes_is_read_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "metrics.jsonl", 0)
    for step in (10, 20):
        loss = math.inf if step == 20 else 2.5
        journal.write(step, {"losses": {"mlm": loss, "nsp": 0.7}, "learning_rate": 1e-4, "tokens": step})
        journal.write(step, {"evaluation": {"mlm_loss": 5.0 / step, "unigram_loss": 6.0, "deep": {"f1": 0.5}}})
    journal.write(20, {"note": "中文", "examples": ["a"], "skipped": 1, "flag": True})
    journal.close()
    metrics = read_metrics(tmp_path / "metrics.jsonl")
    assert list(metrics.series) == [
        *("losses.mlm", "losses.nsp", "learning_rate", "tokens"),
        *("evaluation.mlm_loss", "evaluation.unigram_loss", "evaluation.deep.f1", "skipped"),
    ]
    mlm = metrics.series["losses.mlm"]
    assert mlm.steps == [10, 20] and mlm.values[0] == 2.5 and math.isnan(mlm.values[1])
    assert metrics.notes == [(20, "中文")] and metrics.examples == [(20, ["a"])] and metrics.last_step == 20


def test_panels_join_one_quantity_and_leave_out_counters_and_levels_without_a_curve(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_text(
        '{"step": 1, "e": {"mlm_loss": 2.0, "nsp_loss": 1.0, "bigram_loss": 3.0, "chance_f1": 0.1}, "n": 5, "p": 0.0}\n'
        '{"step": 2, "e": {"mlm_loss": 1.0, "nsp_loss": 1.0, "bigram_loss": 3.0, "chance_f1": 0.1}, "n": 6, "p": 0.0}\n'
    )
    (panel,) = read_metrics(file).panels().values()
    assert [(series.leaf, series.is_baseline) for series in panel] == [
        ("mlm_loss", False),
        ("nsp_loss", False),
        ("bigram_loss", True),
    ]


@pytest.mark.parametrize("text", ["", '{"step": 1, "x'])
def test_nothing_and_a_line_half_written(tmp_path: Path, text: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(text)
    assert read_metrics(tmp_path / "metrics.jsonl") == read_metrics(tmp_path / "missing.jsonl")


@pytest.mark.parametrize("line", ["{", "[1]", '{"x": 1}', '{"step": "a"}', '{"step": NaN}', "\udcff", "[" * 100_000])
def test_a_broken_line_is_told_with_its_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_bytes(b'{"step": 1}\n' + line.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(HeedfulError) as told:
        read_metrics(file)
    assert told.value.where == f"{file}:2"
