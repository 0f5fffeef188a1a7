from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.sentence_transformers import POOLINGS, SentenceSettings
from heedful.errors import HeedfulError

Foreign = Callable[[str], Path]
OLD = "sentence_transformers.models"
NEW = "sentence_transformers.base.modules"


def modules(*types: str) -> list[dict[str, Any]]:
    paths = ["", "1_Pooling", "2_More", "3_More"]
    return [{"idx": i, "name": str(i), "path": paths[i], "type": kind} for i, kind in enumerate(types)]


def add(folder: Path, kinds: Any, pooling: Any) -> Path:
    (folder / "modules.json").write_text(json.dumps(kinds))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


POOLING_FILES: dict[str, tuple[dict[str, Any], str]] = {
    "old mean": ({"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}, "mean"),
    "old cls": ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
    "old max": ({"pooling_mode_max_tokens": True}, "max"),
    "old last": ({"pooling_mode_lasttoken": True}, "last"),
    "nothing on": ({"pooling_mode_cls_token": False}, "mean"),
    "new mean": ({"embedding_dimension": 16, "pooling_mode": "mean", "include_prompt": True}, "mean"),
    "new last": ({"pooling_mode": "lasttoken"}, "last"),
    "new list": ({"pooling_mode": ["mean", "max"]}, "mean-max"),
}


@pytest.mark.parametrize("case", POOLING_FILES)
def test_pooling_of_old_and_new_versions(foreign: Foreign, case: str) -> None:
    pooling, ours = POOLING_FILES[case]
    folder = add(foreign("BertModel"), modules(f"{OLD}.Transformer", f"{OLD}.Pooling"), pooling)
    assert read_folder(folder).sentence == SentenceSettings(ours, normalize=False)


@pytest.mark.parametrize("kinds", [[OLD] * 3, [f"{NEW}.transformer", f"{NEW}.pooling", f"{NEW}.normalize"]])
def test_normalize_of_old_and_new_versions(foreign: Foreign, kinds: list[str]) -> None:
    names = (f"{package}.{kind}" for package, kind in zip(kinds, ("Transformer", "Pooling", "Normalize"), strict=True))
    folder = add(foreign("BertModel"), modules(*names), {"pooling_mode": "cls"})
    read = read_folder(folder)
    assert read.sentence == SentenceSettings("cls", normalize=True)
    assert any("length 1" in note for note in read.notes)


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "dense": (modules(f"{OLD}.Transformer", f"{OLD}.Pooling", f"{OLD}.Dense"), {}, "Transformer, Pooling, Dense"),
    "order": (modules(f"{OLD}.Pooling", f"{OLD}.Transformer"), {}, "Pooling, Transformer"),
    "none": ([], {}, "the modules are none"),
    "no list": ({"a": 1}, {}, "not a list"),
    "outside": (
        [{"type": f"{OLD}.Transformer", "path": "../other"}, {"type": f"{OLD}.Pooling", "path": "1_Pooling"}],
        {},
        "not inside",
    ),
    "weighted": (modules("a.Transformer", "a.Pooling"), {"pooling_mode": "weightedmean"}, "weightedmean"),
    "max before mean": (
        modules("a.Transformer", "a.Pooling"),
        {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True},
        "max beside mean",
    ),
    "no mode": (modules("a.Transformer", "a.Pooling"), {"pooling_mode": 3}, "pooling 3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(foreign: Foreign, case: str) -> None:
    kinds, pooling, message = REFUSED[case]
    with pytest.raises(HeedfulError, match=message) as caught:
        read_folder(add(foreign("BertModel"), kinds, pooling))
    assert caught.value.where and caught.value.remedy


LIMITS: dict[str, tuple[dict[str, dict[str, Any]], int]] = {
    "positions": ({}, 20),
    "tokenizer": ({"tokenizer_config.json": {"model_max_length": 12}}, 12),
    "no limit of the tokenizer": ({"tokenizer_config.json": {"model_max_length": 10**30}}, 20),
    "sentence-transformers": (
        {"tokenizer_config.json": {"model_max_length": 12}, "sentence_bert_config.json": {"max_seq_length": 14}},
        14,
    ),
    "null": (
        {"tokenizer_config.json": {"model_max_length": 12}, "sentence_bert_config.json": {"max_seq_length": None}},
        12,
    ),
    "beyond the positions": ({"sentence_bert_config.json": {"max_seq_length": 400}}, 20),
}


@pytest.mark.parametrize("case", LIMITS)
def test_max_length(foreign: Foreign, case: str) -> None:
    files, expected = LIMITS[case]
    folder = foreign("BertModel")
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    assert read_folder(folder).max_length == expected


def test_lower_casing_before_a_cased_tokenizer_is_refused(foreign: Foreign) -> None:
    folder = foreign("BertModel")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"do_lower_case": True}))
    assert read_folder(folder).tokenizer is not None  # this one lower-cases by itself
    with (folder / "vocab.txt").open("a") as vocabulary:
        vocabulary.write("A\nB\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
    with pytest.raises(HeedfulError, match="do_lower_case"):
        read_folder(folder)


def test_a_default_prompt_is_named(foreign: Foreign) -> None:
    folder = add(foreign("BertModel"), modules("a.Transformer", "a.Pooling"), {})
    settings = {"default_prompt_name": "query", "prompts": {"query": "query: "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    assert any("query: " in note for note in read_folder(folder).notes)


def test_an_encoder_in_a_folder_of_its_own(foreign: Foreign, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    foreign("BertModel").rename(outer / "0_Transformer")
    kinds = modules("a.Transformer", "a.Pooling")
    kinds[0]["path"] = "0_Transformer"
    folder = read_folder(add(outer, kinds, {"pooling_mode": "max"}))
    assert load_encoder(folder).config.hidden_size == 16
    assert folder.tokenizer is not None


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_settings_come_back_as_they_were_written(
    foreign: Foreign, tmp_path: Path, pooling: str, normalize: bool
) -> None:
    folder = read_folder(foreign("BertModel"))
    settings = SentenceSettings(pooling, normalize)
    save_model(load_encoder(folder), tmp_path / "copy", folder.tokenizer, sentence=settings, max_length=9)
    again = read_folder(tmp_path / "copy")
    assert (again.sentence, again.max_length) == (settings, 9)


def test_sentence_transformers_reads_what_is_written_here(foreign: Foreign, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="needs the extra bench")
    folder = read_folder(foreign("BertModel"))
    for pooling in POOLINGS:
        target = tmp_path / pooling
        settings = SentenceSettings(pooling, normalize=True)
        save_model(load_encoder(folder), target, folder.tokenizer, sentence=settings, max_length=9)
        model = library.SentenceTransformer(str(target), device="cpu")
        assert model.max_seq_length == 9
        mode = model[1].pooling_mode
        assert (mode if isinstance(mode, tuple) else (mode,)) == POOLINGS[pooling]
        assert type(model[2]).__name__ == "Normalize"
        model.save(str(tmp_path / f"{pooling}-back"))
        back = read_folder(tmp_path / f"{pooling}-back")
        assert (back.sentence, back.max_length) == (settings, 9)
