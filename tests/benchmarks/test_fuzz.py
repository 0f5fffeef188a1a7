"""The fuzzing of benchmarks/fuzz.py in its short form."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

Script = Callable[[str], ModuleType]


def test_mutated_settings_end_in_our_own_error_or_are_read(script: Script, tmp_path: Path) -> None:
    outcomes = script("fuzz").fuzz_settings(tmp_path, 700, random.Random(1))
    assert len(outcomes) == 7
    assert not [outcome.crashes for outcome in outcomes.values() if outcome.crashes]
    assert all(outcome.refused > 40 for outcome in outcomes.values())


def test_every_row_of_a_mutated_table_is_an_example_or_told_or_the_file_is_refused(
    script: Script, tmp_path: Path
) -> None:
    outcomes = script("fuzz").fuzz_labelled(tmp_path, 700, random.Random(2))
    assert not [outcome.crashes for outcome in outcomes.values() if outcome.crashes]
    assert not [name for name, outcome in outcomes.items() if outcome.unaccounted]
    assert all(0 < outcome.refused < outcome.files for outcome in outcomes.values())


def test_random_unicode_is_encoded_as_the_library_does(script: Script) -> None:
    encoded, different = script("fuzz").compare_encoders(10_000, random.Random(3))
    assert encoded == 10_000
    assert different == []
