"""What is wrong with a folder is refused with what, where and remedy; what is merely unusual is accepted and named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from heedful.checkpoints.encoder_folder import load_encoder, load_for_pretraining, save_model
from heedful.checkpoints.folder import ModelFolder, read_folder
from heedful.errors import HeedfulError
from heedful.text.tokenizer import Tokenizer

Change = Callable[[Path], None]
WORDS = "bert.embeddings.word_embeddings.weight"
QUERY = "bert.encoder.layer.1.attention.self.query.weight"


def config(**values: Any) -> Change:
    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | values))

    return change


def weights(edit: Callable[[dict[str, torch.Tensor]], None]) -> Change:
    def change(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        edit(tensors)
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    return change


def put(name: str, make: Callable[[dict[str, torch.Tensor]], torch.Tensor]) -> Change:
    return weights(lambda tensors: tensors.update({name: make(tensors)}))


def drop(*names: str) -> Change:
    return weights(lambda tensors: [tensors.pop(name) for name in names])


def rename(old: str, new: str) -> Change:
    def edit(tensors: dict[str, torch.Tensor]) -> None:
        for name in [name for name in tensors if old in name]:
            tensors[name.replace(old, new)] = tensors.pop(name)

    return weights(edit)


def write(name: str, text: str | bytes) -> Change:
    return lambda folder: (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode()) and None


def remove(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def misnamed(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def unframed(folder: Path) -> None:
    Tokenizer.load(folder).save(folder)
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"post_processor": None}))


def in_order(*changes: Change) -> Change:
    return lambda folder: [change(folder) for change in changes] and None


REFUSED: dict[str, tuple[Change, str]] = {
    "no config": (remove("config.json"), "no config.json"),
    "config is no JSON": (write("config.json", '{\n "a": 1,\n}'), r"not JSON(.|\n)*config.json:3"),
    "config is no object": (write("config.json", "[1]"), "JSON object"),
    "config is not UTF-8": (write("config.json", b'{"a": "\xff"}'), "not UTF-8 at byte 7"),
    "model type": (config(model_type="t5"), "'t5' is not supported"),
    "no model type": (config(model_type=None, architectures=["Other"]), "no model_type"),
    "activation": (config(hidden_act="snake"), "hidden_act 'snake'"),
    "relative positions": (config(position_embedding_type="relative_key"), "position_embedding_type"),
    "decoder": (config(is_decoder=True), "is_decoder"),
    "cross attention": (config(add_cross_attention=True), "add_cross_attention"),
    "quantised": (config(quantization_config={"bits": 8}), "quantization_config"),
    "untied": (config(tie_word_embeddings=False), "tie_word_embeddings"),
    "code of its own": (config(auto_map={"AutoModel": "modeling.Mine"}), "never run"),
    "no map of code": (config(auto_map=5), "auto_map is 5"),
    "heads": (config(num_attention_heads=3), "multiple"),
    "zero heads": (config(num_attention_heads=0), "num_attention_heads is 0"),
    "dropout": (config(hidden_dropout_prob=1.5), "hidden_dropout_prob is 1.5"),
    "not a number": (config(layer_norm_eps=float("nan")), "layer_norm_eps is nan"),
    "a type": (config(hidden_size="16"), "hidden_size is '16'"),
    "too many layers in the config": (
        config(num_hidden_layers=10**9),
        "asks for 1000000000 layers, the weights hold 2",
    ),
    "too few layers in the config": (config(num_hidden_layers=1), "asks for 1 layers"),
    "another width": (config(hidden_size=32), "shape"),
    "a width beyond all memory": (config(hidden_size=10**30), "config.json asks for"),
    "an inner width beyond all memory": (config(intermediate_size=10**15), "config.json asks for"),
    "fewer rows": (config(vocab_size=30), r"\[40, 16\].*\[30, 16\]"),
    "more pieces than rows": (config(vocab_size=20), "21 pieces, but the model has only 20 rows"),
    "missing tensor": (drop(QUERY), f"lack {QUERY}"),
    "several missing": (drop(QUERY, WORDS), "and 1 more"),
    "half a head": (drop("cls.predictions.transform.dense.bias"), "lack cls.predictions.transform.dense.bias"),
    "unknown tensor": (put("bert.adapter.weight", lambda t: torch.ones(2)), "unknown tensor bert.adapter.weight"),
    "unknown tensor in a layer": (
        put("bert.encoder.layer.1.adapter.weight", lambda t: torch.ones(2)),
        "unknown tensor bert.encoder.layer.1.adapter.weight inside the encoder",
    ),
    "unknown embeddings": (
        put("bert.embeddings.task_type_embeddings.weight", lambda t: torch.ones(3, 16)),
        "task_type_embeddings.weight inside the encoder",
    ),
    "scales of a quantised tensor": (put(f"{QUERY}_scale", lambda t: torch.ones(16)), f"unknown tensor {QUERY}_scale"),
    "mis-shaped tensor": (put(QUERY, lambda t: t[QUERY][:8].clone()), r"\[8, 16\].*\[16, 16\]"),
    "whole numbers": (put(QUERY, lambda t: t[QUERY].to(torch.int8)), "stored as I8"),
    "untied copy": (put("cls.predictions.decoder.weight", lambda t: t[WORDS] + 1), "differs from"),
    "strange positions": (put("bert.embeddings.position_ids", lambda t: torch.arange(20).flip(0)), "does not count"),
    "old and new name": (put("bert.embeddings.LayerNorm.gamma", lambda t: torch.ones(16)), "two tensors for one place"),
    "no weights": (remove("model.safetensors"), "no weights"),
    "safetensors under a wrong name": (misnamed, "not a sound file of torch.save"),
    "empty weights": (write("model.safetensors", b""), "header too small"),
    "huge header": (write("model.safetensors", (2**40).to_bytes(8, "little") + b"{}"), "header too large"),
    "tokenizer without [CLS] and [SEP]": (unframed, r"not put texts between \[CLS\] and \[SEP\]"),
    "vocabulary without [UNK]": (write("vocab.txt", "[PAD]\na\n"), "UNK"),
}

ACCEPTED: dict[str, tuple[Change, str]] = {
    "fewer pieces than rows": (in_order(), "19 of the model's 40 vocabulary rows have no piece"),
    "no tokenizer": (remove("vocab.txt"), "no tokenizer files"),
    "no model type": (config(model_type=None), ""),
    "no NSP head": (drop("cls.seq_relationship.weight", "cls.seq_relationship.bias"), "absent: NSP head"),
    "no pooler": (drop("bert.pooler.dense.weight", "bert.pooler.dense.bias"), "absent: pooler"),
    "position_ids": (put("bert.embeddings.position_ids", lambda t: torch.arange(20)[None]), "position_ids only counts"),
    "tied matrix": (put("cls.predictions.decoder.weight", lambda t: t[WORDS].clone()), "repeats bert.embeddings.word"),
    "tied bias": (
        put("cls.predictions.decoder.bias", lambda t: t["cls.predictions.bias"].clone()),
        "repeats cls.predictions.bias",
    ),
    "tied bias under the copy's name only": (rename("predictions.bias", "predictions.decoder.bias"), "repeats"),
    "old names": (
        in_order(rename("LayerNorm.weight", "LayerNorm.gamma"), rename("LayerNorm.bias", "LayerNorm.beta")),
        "12 tensors of norms are called gamma or beta",
    ),
    "heads of other tasks": (
        in_order(
            put("cls.chain.weight", lambda t: torch.ones(2, 16)),
            put("qa_outputs.weight", lambda t: torch.ones(2, 16)),
            put("lm_head.weight", lambda t: torch.ones(40, 16)),
            put("bert.embeddings.position_ids", lambda t: torch.arange(20)[None]),
        ),
        "not of the encoder, ignored: cls.chain.weight, lm_head.weight",
    ),
    "many tensors of others": (
        in_order(*(put(f"extra.{i}.weight", lambda t: torch.ones(2)) for i in range(7))),
        "extra.4.weight and 2 more",
    ),
    "unknown keys": (config(flavour=1, colour=2), "unknown config keys, kept: flavour, colour"),
    "no padding piece": (config(pad_token_id=None), ""),
}


def load(folder: Path) -> ModelFolder:
    read = read_folder(folder)
    load_encoder(read)
    load_for_pretraining(read, seed=0)
    return read


@pytest.mark.parametrize("case", REFUSED)
def test_refused(foreign: Callable[[str], Path], case: str) -> None:
    change, message = REFUSED[case]
    folder = foreign("BertForPreTraining")
    change(folder)
    with pytest.raises(HeedfulError, match=message) as caught:
        load(folder)
    assert str(folder) in str(caught.value.where)
    assert caught.value.remedy


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted_and_named(foreign: Callable[[str], Path], case: str) -> None:
    change, note = ACCEPTED[case]
    folder = foreign("BertForPreTraining")
    whole = load_encoder(read_folder(folder)).state_dict()
    change(folder)
    read = load(folder)
    assert any(note in line for line in read.notes) or not note
    for name, tensor in load_encoder(read).state_dict().items():
        assert torch.equal(tensor, whole[name])


def pad(folder: Path, rows: int) -> Path:
    """Give a model of 21 pieces so many rows."""
    config(vocab_size=rows)(folder)
    put(WORDS, lambda t: torch.zeros(rows, t[WORDS].shape[1]))(folder)
    put("cls.predictions.bias", lambda t: torch.zeros(rows))(folder)
    return folder


def test_a_tokenizer_that_is_far_too_small_is_that_of_another_model(foreign: Callable[[str], Path]) -> None:
    folder = foreign("BertForPreTraining")
    assert any("128 of the model's 149" in note for note in load(pad(folder, 149)).notes)
    pad(folder, 150)
    with pytest.raises(HeedfulError, match=r"21 pieces and the model 150 rows.*nonsense(.|\n)*`force`"):
        read_folder(folder)
    assert any("129 of the model's 150" in note for note in read_folder(folder, force=True).notes)
    config(tokenizer_pieces=20)(folder)  # that was another tokenizer
    with pytest.raises(HeedfulError, match="nonsense"):
        read_folder(folder)


def test_a_folder_of_ours_says_that_spare_rows_are_meant(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    folder = read_folder(pad(foreign("BertForPreTraining"), 400), force=True)
    save_model(load_encoder(folder), tmp_path / "ours", folder.tokenizer, foreign=folder.config)
    ours = read_folder(tmp_path / "ours")
    assert ours.config["tokenizer_pieces"] == 21 and not any("unknown" in note for note in ours.notes)
    from transformers import AutoModel

    assert AutoModel.from_pretrained(tmp_path / "ours").config.vocab_size == 400


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match="no such folder"):
        read_folder(tmp_path / "none")


def edit_index(edit: Callable[[dict[str, str]], None]) -> Change:
    def change(folder: Path) -> None:
        file = folder / "model.safetensors.index.json"
        index = json.loads(file.read_text())
        edit(index["weight_map"])
        file.write_text(json.dumps(index))

    return change


def another_shard(index: dict[str, str]) -> None:
    index[WORDS] = next(name for name in index.values() if name != index[WORDS])


SHARDS_REFUSED: dict[str, tuple[Change, str]] = {
    "absent shard": (lambda folder: min(folder.glob("*.safetensors")).unlink(), "listed but absent"),
    "wrong shard": (edit_index(another_shard), "this shard"),
    "not listed": (edit_index(lambda index: index.pop(WORDS) and None), "the index does not place here"),
    "outside": (
        edit_index(lambda index: index.update({WORDS: "../other/model.safetensors"})),
        "not a file of this folder",
    ),
    "absolute": (edit_index(lambda index: index.update({WORDS: "/etc/passwd"})), "not a file of this folder"),
    "no name": (edit_index(lambda index: index.update({WORDS: None})), "not a file of this folder"),
    "no map": (write("model.safetensors.index.json", "{}"), "no weight_map"),
}


@pytest.fixture(scope="module")
def sharded(save: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("BertForPreTraining", tmp_path_factory.mktemp("shards") / "model", max_shard_size="5KB")


@pytest.mark.parametrize("case", SHARDS_REFUSED)
def test_shards_refused(sharded: Path, tmp_path: Path, case: str) -> None:
    change, message = SHARDS_REFUSED[case]
    folder = Path(shutil.copytree(sharded, tmp_path / "model"))
    change(folder)
    with pytest.raises(HeedfulError, match=message) as caught:
        load(folder)
    assert str(folder) in str(caught.value.where)
    assert caught.value.remedy
