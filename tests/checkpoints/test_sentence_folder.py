from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import save_file

import heedful
from heedful.checkpoints.conversion import convert
from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.sentence_transformers import POOLINGS, SentenceSettings
from heedful.cli.main import cli
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
    "old weighted": ({"pooling_mode_weightedmean_tokens": True}, "weighted-mean"),
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
    "dense first": (modules(f"{OLD}.Transformer", f"{OLD}.Dense", f"{OLD}.Pooling"), {}, "in this order"),
    "normalize before dense": (modules("a.Transformer", "a.Pooling", "a.Normalize", "a.Dense"), {}, "in this order"),
    "another module": (modules("a.Transformer", "a.Pooling", "a.WeightedLayerPooling"), {}, "WeightedLayerPooling"),
    "order": (modules(f"{OLD}.Pooling", f"{OLD}.Transformer"), {}, "Pooling, Transformer"),
    "none": ([], {}, "the modules are none"),
    "no list": ({"a": 1}, {}, "not a list"),
    "outside": (
        [{"type": f"{OLD}.Transformer", "path": "../other"}, {"type": f"{OLD}.Pooling", "path": "1_Pooling"}],
        {},
        "not inside",
    ),
    "root of the length": (
        modules("a.Transformer", "a.Pooling"),
        {"pooling_mode": "mean_sqrt_len_tokens"},
        "mean_sqrt_len_tokens",
    ),
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


def prompted(folder: Path, pooling: dict[str, Any] | None = None) -> Path:
    add(folder, modules("a.Transformer", "a.Pooling"), pooling or {"pooling_mode": "mean"})
    settings = {"default_prompt_name": "query", "prompts": {"query": "query: ", "passage": "passage: ", "document": ""}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    return folder


def test_prompts_are_read_and_named(foreign: Foreign) -> None:
    read = read_folder(prompted(foreign("BertModel")))
    assert read.sentence is not None
    assert read.sentence.prompts == {"query": "query: ", "passage": "passage: "}
    assert any("query ('query: ')" in note for note in read.notes)
    assert any("default prompt is query" in note for note in read.notes)
    with pytest.raises(HeedfulError, match=r"no prompt 'q'(.|\n)*query, passage"):
        read.sentence.prompt("q")
    with pytest.raises(HeedfulError, match="no prompt 'q'"):
        SentenceSettings().prompt("q")


def test_a_pooling_that_leaves_prompts_out_is_refused(foreign: Foreign) -> None:
    with pytest.raises(HeedfulError, match="include_prompt"):
        read_folder(prompted(foreign("BertModel"), {"pooling_mode": "mean", "include_prompt": False}))


def test_a_prompt_stands_before_each_text(tiny_folder: Path, tmp_path: Path) -> None:
    folder = prompted(Path(shutil.copytree(tiny_folder, tmp_path / "m")))
    model, texts = heedful.load(folder, "cpu"), ["the cat", "a dog sees"]
    found = model.embed(texts, prompt="query")
    np.testing.assert_array_equal(found, model.embed([f"query: {text}" for text in texts]))
    assert not np.allclose(found, model.embed(texts))
    np.testing.assert_array_equal(list(model.embed_stream(texts, prompt="query")), found)
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in texts))
    output = tmp_path / "v.npy"
    command = ["embed", str(folder), str(tmp_path / "texts.txt"), "-o", str(output), "--prompt", "query"]
    assert CliRunner().invoke(cli, command).exit_code == 0
    np.testing.assert_allclose(np.load(output), found, atol=1e-6)
    with pytest.raises(HeedfulError, match="prompts are for vectors of whole sentences"):
        model.embed(texts, prompt="query", unit="word")
    convert(folder, tmp_path / "copy")
    np.testing.assert_array_equal(heedful.load(tmp_path / "copy", "cpu").embed(texts, prompt="query"), found)


def with_dense(folder: Path, activation: str, outputs: int = 5, binary: bool = False) -> dict[str, torch.Tensor]:
    kinds = modules("a.Transformer", "a.Pooling", "a.Dense", "a.Normalize")
    add(folder, kinds, {"embedding_dimension": 32, "pooling_mode": "weightedmean"})
    (folder / "2_More").mkdir()
    config = {"in_features": 32, "out_features": outputs, "bias": True, "activation_function": activation}
    (folder / "2_More" / "config.json").write_text(json.dumps(config))
    rng = torch.Generator().manual_seed(0)
    weights = {
        "linear.weight": torch.empty(outputs, 32).normal_(generator=rng),
        "linear.bias": torch.empty(outputs).normal_(generator=rng),
    }
    if binary:
        torch.save(weights, folder / "2_More" / "pytorch_model.bin")
    else:
        save_file(weights, folder / "2_More" / "model.safetensors", {"format": "pt"})
    return weights


@pytest.mark.parametrize("binary", [False, True])
def test_dense_layers_follow_the_folders_own_pooling(tiny_folder: Path, tmp_path: Path, binary: bool) -> None:
    folder = Path(shutil.copytree(tiny_folder, tmp_path / "m"))
    weights = with_dense(folder, "torch.nn.modules.activation.Tanh", binary=binary)
    model, texts = heedful.load(folder, "cpu"), ["the cat", "a dog sees the cat", ""]
    assert model.folder.sentence is not None and model.folder.sentence.normalize
    tokens = model.embed(texts, unit="token")
    pooled = []
    for states in tokens:
        places = np.arange(1, len(states) + 1)[:, None]
        pooled.append((states * places).sum(0) / places.sum())
    expected = np.tanh(np.stack(pooled) @ weights["linear.weight"].numpy().T + weights["linear.bias"].numpy())
    np.testing.assert_allclose(model.embed(texts), expected, atol=1e-5)
    unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(model.embed(texts, normalize=True), unit, atol=1e-5)
    assert model.embed([], normalize=True).shape == (0, 5)
    assert model.embed(texts, pooling="mean").shape == (3, 32)  # the layer was made for another pooling
    assert model.embed(texts, layers=(-2,)).shape == (3, 32)
    convert(folder, tmp_path / "copy")
    np.testing.assert_array_equal(heedful.load(tmp_path / "copy", "cpu").embed(texts), model.embed(texts))


def test_what_is_wrong_with_a_dense_layer(tiny_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_folder, tmp_path / "m"))
    with_dense(folder, "os.system")
    with pytest.raises(HeedfulError, match="activation system"):
        read_folder(folder)
    config = {"in_features": 31, "out_features": 5, "activation_function": "torch.nn.modules.linear.Identity"}
    (folder / "2_More" / "config.json").write_text(json.dumps(config))
    with pytest.raises(HeedfulError, match=r"linear\.weight"):
        heedful.load(folder, "cpu").embed(["a"])
    (folder / "2_More" / "config.json").write_text(json.dumps(config | {"out_features": "5"}))
    with pytest.raises(HeedfulError, match="out_features"):
        read_folder(folder)


def test_sentence_transformers_gives_the_same_vectors(tiny_folder: Path, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="needs the extra bench")
    folder = Path(shutil.copytree(tiny_folder, tmp_path / "m"))
    with_dense(folder, "torch.nn.modules.activation.Tanh")
    for file, old in (("modules.json", "a."),):
        (folder / file).write_text((folder / file).read_text().replace(old, "sentence_transformers.models."))
    (folder / "3_More").mkdir()
    texts = ["the cat", "a dog sees the cat"]
    theirs = library.SentenceTransformer(str(folder), device="cpu").encode(texts)
    np.testing.assert_allclose(heedful.load(folder, "cpu").embed(texts, normalize=True), theirs, atol=1e-5)


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
        ours = heedful.load(target, "cpu").embed(["abc", "a hag gab"], normalize=True)
        np.testing.assert_allclose(ours, model.encode(["abc", "a hag gab"]), atol=1e-5)
        model.save(str(tmp_path / f"{pooling}-back"))
        back = read_folder(tmp_path / f"{pooling}-back")
        assert (back.sentence, back.max_length) == (settings, 9)
