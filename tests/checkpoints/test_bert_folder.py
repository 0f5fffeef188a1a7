from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file

from heedful.checkpoints.bert_names import BERT_NAMES
from heedful.checkpoints.encoder_folder import load_encoder, load_for_pretraining, save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.weights import take_apart
from heedful.errors import HeedfulError
from heedful.models.bert import Bert, BertConfig, BertForPretraining, initialise

Foreign = Callable[[str], Path]
CLEAN = {"missing_keys": set(), "unexpected_keys": set(), "mismatched_keys": set()}


def on_disk(folder: Path) -> dict[str, torch.Tensor]:
    """Every tensor of a folder by the names with `bert.` in front, read without our code."""
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors.update(load_file(file))
    bare = not any(name.startswith("bert.") for name in tensors)
    return {f"bert.{name}" if bare else name: tensor for name, tensor in tensors.items()}


def assert_same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, theirs[name].float()), name


def encoder_only(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in tensors.items() if name.startswith("bert.")}


@pytest.mark.parametrize(
    "name", ["BertModel", "BertForPreTraining", "BertForMaskedLM", "BertForSequenceClassification"]
)
def test_a_foreign_encoder_is_read_tensor_by_tensor(foreign: Foreign, name: str) -> None:
    folder = foreign(name)
    model = load_encoder(read_folder(folder))
    assert_same(take_apart(model, BERT_NAMES, "encoder."), encoder_only(on_disk(folder)))
    assert (model.pooler is None) == (name == "BertForMaskedLM")


def test_foreign_heads_are_read_tensor_by_tensor(foreign: Foreign) -> None:
    folder = foreign("BertForPreTraining")
    assert_same(take_apart(load_for_pretraining(read_folder(folder), seed=0), BERT_NAMES), on_disk(folder))


def test_parts_that_are_absent_start_from_the_seed(foreign: Foreign) -> None:
    folder = read_folder(foreign("BertForMaskedLM"))
    first, again, other = (load_for_pretraining(folder, seed) for seed in (1, 1, 2))
    assert torch.equal(first.nsp.weight, again.nsp.weight)
    assert not torch.equal(first.nsp.weight, other.nsp.weight)
    assert torch.equal(first.nsp.bias, torch.zeros(2))
    assert torch.equal(first.mlm.bias, other.mlm.bias)
    assert any("pooler, NSP head" in note for note in folder.notes)


def test_shards_and_half_precision(save: Callable[..., Path], tmp_path: Path) -> None:
    folder = save("BertForPreTraining", tmp_path / "shards", max_shard_size="5KB")
    assert len(list(folder.glob("*.safetensors"))) > 2
    assert_same(take_apart(load_for_pretraining(read_folder(folder), 0), BERT_NAMES), on_disk(folder))
    folder = save("BertForPreTraining", tmp_path / "half", half=True)
    assert next(iter(on_disk(folder).values())).dtype == torch.float16
    assert_same(take_apart(load_for_pretraining(read_folder(folder), 0), BERT_NAMES), on_disk(folder))
    assert any("F16" in note for note in read_folder(folder).notes)


@pytest.mark.parametrize("max_shard_bytes", [None, 4000])
@pytest.mark.parametrize("name", ["BertModel", "BertForPreTraining"])
def test_what_is_written_here_loads_there_and_back(
    foreign: Foreign, tmp_path: Path, name: str, max_shard_bytes: int | None
) -> None:
    folder = read_folder(foreign(name))
    model = load_encoder(folder) if name == "BertModel" else load_for_pretraining(folder, 0)
    copy = tmp_path / "copy"
    save_model(model, copy, folder.tokenizer, foreign=folder.config, max_shard_bytes=max_shard_bytes)
    assert (copy / "model.safetensors.index.json").exists() == (max_shard_bytes is not None)
    theirs, info = getattr(transformers, name).from_pretrained(copy, output_loading_info=True)
    assert {key: set(info[key]) for key in CLEAN} == CLEAN
    assert_same(on_disk(copy), on_disk(folder.path))
    theirs.save_pretrained(tmp_path / "back")
    assert_same(on_disk(tmp_path / "back"), on_disk(folder.path))
    tokenizer = transformers.AutoTokenizer.from_pretrained(copy)
    assert tokenizer("abc")["input_ids"] == folder.tokenizer.encode("abc").ids


def test_a_model_made_here_comes_back_bit_for_bit(tmp_path: Path) -> None:
    config = BertConfig(vocab_size=30, hidden_size=8, num_hidden_layers=11, num_attention_heads=2, intermediate_size=12)
    model = BertForPretraining(config)
    initialise(model, config, seed=3)
    save_model(model, tmp_path / "m", None)
    folder = read_folder(tmp_path / "m")
    assert folder.model_config == config
    again = load_for_pretraining(folder, seed=0)
    assert_same(again.state_dict(), model.state_dict())
    assert not again.training
    assert all(parameter.requires_grad for parameter in again.parameters())


def test_unknown_config_keys_are_written_back(foreign: Foreign, tmp_path: Path) -> None:
    path = foreign("BertModel")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | {"flavour": "wild 野"}))
    folder = read_folder(path)
    assert "unknown config keys, kept: flavour" in folder.notes
    save_model(load_encoder(folder), tmp_path / "copy", folder.tokenizer, foreign=folder.config)
    assert read_folder(tmp_path / "copy").config["flavour"] == "wild 野"


def test_weights_are_as_readable_as_the_config(foreign: Foreign, tmp_path: Path) -> None:
    save_model(load_encoder(read_folder(foreign("BertModel"))), tmp_path / "m", None)
    modes = {path.stat().st_mode for path in (tmp_path / "m").iterdir()}
    assert len(modes) == 1


def test_saving_never_replaces_what_is_not_a_model(foreign: Foreign, tmp_path: Path) -> None:
    folder = read_folder(foreign("BertModel"))
    model = load_encoder(folder)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years of work")
    with pytest.raises(HeedfulError, match="not a model"):
        save_model(model, tmp_path / "home", None, overwrite=True)
    with pytest.raises(HeedfulError, match="not empty"):
        save_model(model, folder.path, None)
    save_model(model, folder.path, None, overwrite=True)
    assert read_folder(folder.path).tokenizer is None
    assert (tmp_path / "home" / "thesis.txt").read_text() == "years of work"


def test_saving_refuses_a_tokenizer_with_too_many_pieces(foreign: Foreign, tmp_path: Path) -> None:
    tokenizer = read_folder(foreign("BertModel")).tokenizer
    config = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12)
    with pytest.raises(HeedfulError, match="21 pieces"):
        save_model(Bert(config), tmp_path / "m", tokenizer)
    assert not (tmp_path / "m").exists()
