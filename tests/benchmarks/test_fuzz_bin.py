"""The fuzzing of benchmarks/fuzz_bin.py in its short form."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

Script = Callable[[str], ModuleType]


def test_mutated_bins_are_refused_or_read_and_nothing_is_run(script: Script, tmp_path: Path) -> None:
    outcomes = script("fuzz_bin").fuzz_bins(tmp_path, 2500, random.Random(1))
    assert not (tmp_path / "sentinel").exists()
    assert not [outcome.crashes for outcome in outcomes.values() if outcome.crashes]
    # Addresses of memory in the legacy layout make runs differ: nine of ten are refused, but of a hundred at times 80.
    assert all(outcome.refused > 400 for outcome in outcomes.values())
    assert outcomes["hostile archive"].refused == outcomes["hostile archive"].files == 500
    assert outcomes["archive"].other == 0


def test_mutated_bundles_are_refused_or_read(script: Script, tmp_path: Path) -> None:
    (outcome,) = script("fuzz_bin").fuzz_bundles(tmp_path, 200, random.Random(2)).values()
    assert not outcome.crashes
    assert outcome.refused > 100


def test_flipped_bits_are_detected_or_harmless(script: Script, tmp_path: Path) -> None:
    for outcome in script("fuzz_bin").flip_bits(tmp_path, 100, random.Random(3)).values():
        assert not outcome.crashes and outcome.other == 0
        assert outcome.refused + outcome.same == 100
