"""A loss that never fell is told; one that did, for however short a while, is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heedful.training.loss_remark import loss_remark


@pytest.mark.parametrize(
    ("losses", "told"),
    [
        ([0.7, 900.0, 1081.0], "0.7 at first, 1,081 at the end"),
        ([0.7, 0.6, 0.9], None),
        ([0.7], None),
        ([0.7, None, 0.7], "0.7 at first, 0.7 at the end"),
    ],
)
def test_told_when_it_never_fell(tmp_path: Path, losses: list[float | None], told: str | None) -> None:
    lines = [{"step": step, "losses": {"classify": loss}} for step, loss in enumerate(losses)]
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, [*lines, {"step": 9, "evaluation": {"f1": 1.0}}])))
    remark = loss_remark(tmp_path / "m.jsonl")
    assert remark is None if told is None else remark is not None and told in remark
