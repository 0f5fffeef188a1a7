"""The power goes while checkpoints are written; benchmarks/power_cut.py does the same for longer."""

from __future__ import annotations

import importlib
import random
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux: to see what is synced")
def test_whatever_reached_the_disk_there_is_a_sound_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    report = importlib.import_module("power_cut").cuts(tmp_path.resolve(), 3, 3, random.Random(1))
    assert report["cuts"] > 200
    assert report["without a sound checkpoint"] == 0
    assert report["a finished checkpoint lost"] == 0
