"""benchmarks/sliced_runs.py: fine-tuning and translating in slices, held against one process, which goes on with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

EXACT = {"dropout": 0.0, "precision": "float32", "learning_rate": 1e-3, "budget": "4steps", "checkpoint_every": 2}


def test_runs_in_slices_are_those_of_one_process_and_a_rank_with_other_data_is_named(
    script: Callable[[str], ModuleType], tiny_folder: Path, tmp_path: Path
) -> None:
    runs = script("sliced_runs")
    rows = [f"the cat sees {word}\t{label}\t我爱北京" for word, label in zip("abcdefghij", "xyxyxyxyxy", strict=True)]
    for name, some in (("rows.tsv", rows), ("others.tsv", [*rows[:-1], rows[0]])):
        (tmp_path / name).write_text("\n".join(["text\tlabel\tzh", *some]) + "\n", encoding="utf-8")
    table = {**EXACT, "train": str(tmp_path / "rows.tsv")}
    classify = {**table, "task": "classify", "model": str(tiny_folder), "batch_size": 5, "accumulate": 2}
    shape = {"tokenizer": [str(tiny_folder)], "size": "tiny", "set": {"width": 32, "inner": 48}, "batch_size": 60}
    told = {
        "classify": {"call": "finetune", "settings": {**classify, "freeze": "1"}},
        "translate": {"call": "train_translator", "settings": {**table, "source": "text", "target": "zh", **shape}},
        "other": {
            "call": "finetune",
            "settings": classify,
            "of_rank_1": {"train": str(tmp_path / "others.tsv")},
        },
    }
    found = runs.trained(told, tmp_path / "two", 2, "shard")
    assert "rank 1 has another data than rank 0" in found["other"]
    assert not (tmp_path / "two" / "other").exists()
    assert (tmp_path / "two" / "classify" / "checkpoints" / "step-000004" / "weights" / "slices.json").exists()
    runs.lose_the_end(tmp_path / "two")
    for name in ("classify", "translate"):
        one = runs.carried_out(told[name], tmp_path / "one" / name)
        assert len(one) == 4
        assert runs.difference(found[name], one) < 1e-5
        # A process alone goes on with a run in slices.
        on = runs.carried_out(told[name], tmp_path / "two" / name, "shard", "resume")
        assert len(on) == 2
        assert runs.difference(on, one) < 1e-5
