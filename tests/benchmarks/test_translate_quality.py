"""benchmarks/translate_quality.py and translate_lengths.py: test sets are what they say."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

Script = Callable[[str], ModuleType]


def test_single_and_joined_sentences(script: Script) -> None:
    lengths = script("translate_lengths")
    pairs = [(f"{'word ' * n}.", f"target {n}") for n in range(1, 40)]
    sets = lengths.test_sets(pairs)
    single, joined = sets.values()
    assert sorted(chain.from_iterable(single)) == sorted(pairs)
    assert [len(group) for group in joined] == [39, 19, 13, 9]
    source, target = joined[3][0]
    assert source.count(".") == 4 and target.count("target") == 4


def test_pictures_and_tables(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = script("translate_lengths")
    groups = [{"pairs": 2, "words": w, "bleu": b, "low": b - 1, "high": b + 2} for w, b in ((5.0, 30.0), (9.0, 20.0))]
    lengths.write(tmp_path / "lengths.json", {"Single": {"RNN": groups, "attention": groups}})
    assert (tmp_path / "lengths.svg").read_text(encoding="utf-8").count("spread") > 4
    table = json.loads((tmp_path / "lengths.json").read_text(encoding="utf-8"))["tables"][0]
    assert table["columns"][1] == "5 words (2 pairs)" and table["rows"][0][1] == "30.0 (29.0 to 32.0)"


def test_tatoeba_is_cut_by_a_part_of_short_and_long_pairs(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quality = script("translate_quality")
    (tmp_path / "tatoeba_en_zh").mkdir()
    rows = [f"word {n}\t词 {n}\tsomeone\n" for n in range(50)]
    with gzip.open(tmp_path / "tatoeba_en_zh" / "train.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("en\tzh\tattribution\n" + "".join(rows))
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    monkeypatch.setattr(quality, "HELD_OUT", 5)
    (tatoeba,) = (run for run in quality.RUNS if run.data == "tatoeba")
    train, dev, test = quality.files(tatoeba, tmp_path / "work")
    parts = [file.read_text(encoding="utf-8").splitlines(keepends=True)[1:] for file in (train, dev)]
    assert len(parts[1]) == 5 and sorted(parts[0] + parts[1]) == sorted(rows)
    assert test == tmp_path / "tatoeba_en_zh" / "dev.tsv"
    assert len({run.folder for run in quality.RUNS}) == len(quality.RUNS)
