"""The fuzzing of benchmarks/fuzz.py in its short form."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from heedful.errors import HeedfulError

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


def test_what_mutations_once_broke_is_refused(script: Script, tmp_path: Path) -> None:
    fuzz = script("fuzz")
    fuzz.material(tmp_path)
    tokenizer = (tmp_path / "model/tokenizer.json").read_text(encoding="utf-8")
    cases = {
        "corpus/manifest.json": ("[" * 100_000, fuzz._corpus),
        "run/config.toml": ("steps = " + "[" * 300 + "]" * 300, fuzz._run),
        "model/tokenizer.json": (tokenizer.replace('"unk_token": "[UNK]"', '"unk_token": "[NOPE]"'), fuzz._model),
    }
    for name, (text, read) in cases.items():
        assert text != (tmp_path / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(HeedfulError):
            read(tmp_path)
    (tmp_path / "run/config.toml").write_text("", encoding="utf-8")
    with pytest.raises(HeedfulError, match="says nothing"):
        fuzz._run(tmp_path)
