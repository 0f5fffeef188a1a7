"""Two processes against one at the same global batch, though one of the two is lost on the way and restarted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest
from safetensors.torch import load_file

EXACT = ("--dropout", "0", "--clip", "0", "--steps", "20", "--checkpoint-every", "1", "--keep", "20")


def test_two_ranks_have_the_gradients_and_losses_of_one(faults: ModuleType, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert faults.train(one, *EXACT).returncode == 0
    done = faults.train(two, *EXACT, "--die", "1", "12", ranks=2, restarts=1)
    assert done.returncode == 0, done.stderr
    assert re.search(r"resumed from step-0000(0[1-9]|1\d)", done.stdout)
    # After the first step Adam's mean is the gradient times 1 - beta1.
    first, other = (load_file(run / "checkpoints/step-000001/moments/model.safetensors") for run in (one, two))
    for name in (name for name in first if name.startswith("mean.")):
        assert (first[name] - other[name]).norm() <= 1e-6 * first[name].norm(), name
    lines, others = ([json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()] for run in (one, two))
    assert [line["step"] for line in lines] == [line["step"] for line in others] == list(range(5, 21, 5))
    for line, theirs in zip(lines, others, strict=True):
        assert theirs["losses"] == pytest.approx(line["losses"], rel=1e-4)
        assert theirs["tokens"] == line["tokens"]
