"""Two folders are the same model exactly if they compute the same."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.sentence_transformers import SentenceSettings
from heedful.checkpoints.task_folder import load_for_task, save_for_task
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.inference.verification import verify
from heedful.models.heads import SequenceClassifier


@pytest.fixture
def copy(tiny_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder, tmp_path / "copy"))


def change(folder: Path, name: str, by: float) -> None:
    """Add to one number of one tensor."""
    tensors = load_file(folder / "model.safetensors")
    tensors[name].view(-1)[3] += by
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def test_a_copy_is_the_same(tiny_folder: Path, copy: Path) -> None:
    found = verify(tiny_folder, copy, ["the cat", "我爱北京"])
    assert found.same and found.largest == 0 and not found.notes
    named = [one.what for one in found.differences]
    assert named == ["layer 0", "layer 1", "layer 2", "layer 3", "pooler", "MLM head", "NSP head"]


def test_a_change_is_found_from_its_layer_on(tiny_folder: Path, copy: Path) -> None:
    change(copy, "bert.encoder.layer.1.output.dense.bias", 0.5)
    found = verify(tiny_folder, copy)
    largest = {one.what: one.largest for one in found.differences}
    assert not found.same and largest["layer 1"] == 0 and largest["layer 2"] > 0.01 and largest["NSP head"] > 0
    assert verify(tiny_folder, copy, tolerance=1000).same


def test_a_change_in_a_head_is_found_there(tiny_folder: Path, copy: Path) -> None:
    change(copy, "cls.predictions.bias", 1.0)
    found = verify(tiny_folder, copy)
    assert [one.what for one in found.differences if one.largest] == ["MLM head"]
    assert found.largest == pytest.approx(1.0, abs=1e-5)


def test_no_number_is_a_difference(tiny_folder: Path, copy: Path) -> None:
    change(copy, "bert.encoder.layer.0.output.dense.bias", float("nan"))
    assert verify(tiny_folder, copy).largest == float("inf")
    assert verify(copy, copy).same


def test_what_only_one_has_is_told(tiny_folder: Path, tmp_path: Path) -> None:
    folder = read_folder(tiny_folder)
    save_model(load_encoder(folder), tmp_path / "bare", folder.tokenizer)
    found = verify(tiny_folder, tmp_path / "bare")
    assert found.same and found.notes == ("only the first has: MLM head", "only the first has: NSP head")


def test_vectors_are_compared_where_a_folder_says_how_they_are_made(tiny_folder: Path, tmp_path: Path) -> None:
    folder = read_folder(tiny_folder)
    for name, settings in (("mean", SentenceSettings("mean")), ("cls", SentenceSettings("cls")), ("plain", None)):
        save_model(load_encoder(folder), tmp_path / name, folder.tokenizer, sentence=settings)
    found = verify(tmp_path / "mean", tmp_path / "cls")
    assert not found.same and [one.what for one in found.differences if one.largest] == ["sentence vectors"]
    found = verify(tmp_path / "mean", tmp_path / "plain")
    assert found.same and found.notes == ("only the first has: sentence vectors",)


def test_heads_of_tasks_are_compared(tiny_folder: Path, tmp_path: Path) -> None:
    folder = read_folder(tiny_folder)
    for name, seed, labels in (("a", 1, "xy"), ("b", 2, "xy"), ("c", 1, "xyz")):
        model = load_for_task(folder, partial(SequenceClassifier, labels=len(labels)), seed)
        task = {"task": "classify", "labels": list(labels)}
        save_for_task(
            model,
            tmp_path / name,
            folder.tokenizer,
            task=task,
            architecture="SequenceClassification",
            labels=tuple(labels),
        )
    assert verify(tmp_path / "a", tmp_path / "a").same
    found = verify(tmp_path / "a", tmp_path / "b")
    assert [one.what for one in found.differences if one.largest] == ["head of the task classify"]
    assert "2 numbers beside 3" in verify(tmp_path / "a", tmp_path / "c").apart[0]


def test_another_tokenizer_or_shape_is_another_model(tiny_folder: Path, copy: Path, tmp_path: Path) -> None:
    vocabulary = (copy / "vocab.txt").read_text(encoding="utf-8").splitlines()
    vocabulary[40], vocabulary[5] = vocabulary[5], vocabulary[40]
    for name in ("tokenizer.json", "special_tokens_map.json", "tokenizer_config.json"):
        (copy / name).unlink()
    (copy / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary), encoding="utf-8")
    found = verify(tiny_folder, copy, [f"{vocabulary[5]} {vocabulary[40].removeprefix('##')}", "a zebra"])
    assert not found.same and "other pieces" in found.apart[0]
    config = json.loads((copy / "config.json").read_text())
    tensors = load_file(copy / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if "layer.2." not in name}
    save_file(kept, copy / "model.safetensors", {"format": "pt"})
    (copy / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2}))
    assert verify(tiny_folder, copy).apart == ("3 layers, width 32, 4 heads beside 2 layers, width 32, 4 heads",)


def test_the_command_and_its_exit_code(tiny_folder: Path, copy: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat\nthe dog\n")
    run = CliRunner()
    good = run.invoke(cli, ["verify", str(tiny_folder), str(copy), str(texts)])
    assert good.exit_code == 0 and "the same model" in good.output
    change(copy, "cls.predictions.bias", 1.0)
    bad = run.invoke(cli, ["verify", str(tiny_folder), str(copy), str(texts), "--json"])
    assert bad.exit_code == 1
    told = json.loads(bad.output)
    assert told["same"] is False and told["differences"]["MLM head"] > 0.9
    with pytest.raises(HeedfulError, match="no texts"):
        verify(tiny_folder, copy, [])


def test_convert_from_the_command_line(tiny_folder: Path, tmp_path: Path) -> None:
    source = Path(shutil.copytree(tiny_folder, tmp_path / "bin"))
    torch.save(load_file(source / "model.safetensors"), source / "pytorch_model.bin")
    (source / "model.safetensors").unlink()
    done = CliRunner().invoke(cli, ["convert", str(source), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0 and "the same, largest difference 0.0e+00" in done.output
    assert verify(tiny_folder, tmp_path / "out").same
