"""Fine-tuned model folders: what starts afresh, what comes back, what is refused, and which task a folder is for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import heedful
from heedful.checkpoints.encoder_folder import load_encoder
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import load_for_task, read_task, save_for_task, start_for_task
from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.bert import Bert
from heedful.models.heads import SequenceClassifier, SpanFinder, Tagger
from heedful.nn.crf import Crf, bio_transitions
from heedful.schema import Selection

Build = Callable[[Bert], nn.Module]
Foreign = Callable[[str], Path]
BIO = ("O", "B-人", "I-人")
BATCH = flat_batch([[2, 9, 8, 5, 3], [2, 7, 6, 3], [2, 4, 3]])
WORDS = Selection(BATCH, torch.tensor([0, 1, 5, 6, 9]), (2, 2, 1))
BERT = {f"bert.{part}" for part in ("embeddings", "encoder", "pooler")}


def bio_tagger(encoder: Bert) -> nn.Module:
    model = Tagger(encoder, 3, "bilstm-crf", (), 6, 2)
    model.crf = Crf(3, *bio_transitions(BIO))
    return model


MODELS: dict[str, Build] = {
    "classification": lambda encoder: SequenceClassifier(encoder, 3),
    "regression": lambda encoder: SequenceClassifier(encoder, 1),
    "classification of features": lambda encoder: SequenceClassifier(encoder, 3, (-1, -2)),
    "linear tagging": lambda encoder: Tagger(encoder, 3),
    "bilstm tagging": lambda encoder: Tagger(encoder, 3, "bilstm", (-1, 1), 6),
    "bilstm-crf tagging": bio_tagger,
    "answering": SpanFinder,
}


def load(path: Path, build: Build, seed: int = 0, **options: Any) -> nn.Module:
    return load_for_task(read_folder(path), build, seed, **options)


def stirred(model: nn.Module) -> nn.Module:
    """The model with all of its weights random, so that nothing is equal by chance."""
    rng = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.2, generator=rng)
    return model


def save(model: nn.Module, path: Path, **options: Any) -> Path:
    settings: dict[str, Any] = {"task": {"task": "mine"}, "architecture": None} | options
    save_for_task(model, path, settings.pop("tokenizer", None), **settings)
    return path


def same(one: nn.Module, other: nn.Module) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


@pytest.mark.parametrize("name", MODELS)
def test_a_start_from_a_pretrained_folder(tiny_folder: Path, name: str) -> None:
    notes: list[str] = []
    model = load(tiny_folder, MODELS[name], 1, note=notes.append)
    assert not model.training
    encoder, pretrained = model.get_submodule("encoder"), load_encoder(read_folder(tiny_folder)).state_dict()
    for parameter, tensor in encoder.state_dict().items():
        assert torch.equal(tensor, pretrained[parameter]), parameter
    heads = {parameter.split(".")[0] for parameter in model.state_dict()} - {"encoder"}
    assert {note.split(" ")[0] for note in notes} == heads
    assert all("starts afresh: the folder has none" in note for note in notes)


@pytest.mark.parametrize("name", MODELS)
def test_a_seed_decides_how_a_head_starts(tiny_folder: Path, name: str) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = load(tiny_folder, MODELS[name], 1)
    torch.rand(3)
    again, other = (load(tiny_folder, MODELS[name], seed) for seed in (1, 2))
    assert same(first, again) and not same(first, other)
    torch.set_rng_state(before)
    load(tiny_folder, MODELS[name], 1)
    assert torch.equal(torch.get_rng_state(), before)
    for parameter, tensor in first.state_dict().items():
        head = parameter.startswith(("classifier", "span", "lstm"))
        weight = parameter.endswith("weight") or "lstm.weight" in parameter
        assert not head or not weight or not torch.equal(tensor, other.state_dict()[parameter]), parameter


def test_new_layers_start_as_bert_does(foreign: Foreign) -> None:
    folder = read_folder(foreign("BertForMaskedLM"))  # which has no pooler
    notes: list[str] = []
    model = load_for_task(folder, lambda encoder: SequenceClassifier(encoder, 200), 3, note=notes.append)
    assert isinstance(model, SequenceClassifier) and model.encoder.pooler is not None
    assert sorted(note.split(" ")[0] for note in notes) == ["classifier", "encoder.pooler"]
    for layer in (model.classifier, model.encoder.pooler):
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.15)
        assert not layer.bias.any()
    assert not torch.equal(model.classifier.weight[0], model.encoder.pooler.weight[0])


@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_comes_back_bit_for_bit(tiny_folder: Path, tmp_path: Path, name: str) -> None:
    model = stirred(load(tiny_folder, MODELS[name]))
    folder = save(model, tmp_path / "m", tokenizer=read_folder(tiny_folder).tokenizer)
    again = load(folder, MODELS[name], seed=9, complete=True)
    assert same(model, again)
    with torch.inference_mode():
        assert torch.equal(model(WORDS), again(WORDS))
    trained = {parameter: p.requires_grad for parameter, p in model.named_parameters()}
    assert trained == {parameter: p.requires_grad for parameter, p in again.named_parameters()}
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize("name", MODELS)
def test_a_fine_tuned_folder_still_embeds(tiny_folder: Path, tmp_path: Path, name: str) -> None:
    model = stirred(load(tiny_folder, MODELS[name]))
    tokenizer = read_folder(tiny_folder).tokenizer
    folder = save(model, tmp_path / "m", tokenizer=tokenizer)
    encoder = model.get_submodule("encoder")
    assert isinstance(encoder, Bert) and tokenizer is not None
    found = heedful.load(folder, "cpu").embed(["the cat sees", "我爱北京"], pooling="mean")
    with torch.inference_mode():
        expected = [
            encoder(flat_batch([tokenizer.encode(text).ids])).last.mean(0) for text in ("the cat sees", "我爱北京")
        ]
    np.testing.assert_allclose(found, torch.stack(expected).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("classification", {"classifier"}),
        ("linear tagging", {"classifier"}),
        ("answering", {"qa_outputs"}),
        ("bilstm-crf tagging", {"classifier", "tagger.lstm", "tagger.crf"}),
    ],
)
def test_the_names_on_disk(tiny_folder: Path, tmp_path: Path, name: str, heads: set[str]) -> None:
    folder = save(load(tiny_folder, MODELS[name]), tmp_path / "m")
    names = set(load_file(folder / "model.safetensors"))
    pooled = BERT if name == "classification" else BERT - {"bert.pooler"}
    beginnings = {".".join(n.split(".")[: 2 if n.startswith(("bert.", "tagger.")) else 1]) for n in names}
    assert beginnings == pooled | heads
    if "tagger.crf" in heads:
        crf = {"tagger.crf.starts", "tagger.crf.transitions", "tagger.crf.ends"}
        assert crf < names and "tagger.lstm.weight_hh_l1_reverse" in names


def other_head(tiny_folder: Path, tmp_path: Path, saved: Build, asked: Build) -> tuple[nn.Module, nn.Module, list[str]]:
    notes: list[str] = []
    model = stirred(load(tiny_folder, saved))
    folder = save(model, tmp_path / "m")
    with pytest.raises(HeedfulError, match="not complete") as caught:
        load(folder, asked, complete=True)
    assert caught.value.where == folder and caught.value.remedy
    return model, load(folder, asked, note=notes.append), notes


def test_another_number_of_labels_starts_afresh(tiny_folder: Path, tmp_path: Path) -> None:
    asked: Build = lambda encoder: SequenceClassifier(encoder, 5)  # noqa: E731
    old, new, notes = other_head(tiny_folder, tmp_path, MODELS["classification"], asked)
    assert len(notes) == 1 and "classifier starts afresh" in notes[0] and "other labels" in notes[0]
    assert same(old.get_submodule("encoder"), new.get_submodule("encoder"))
    assert new.get_submodule("classifier").weight.shape == (5, 32)


@pytest.mark.parametrize(("layers", "width"), [(1, 6), (3, 6), (2, 7)])
def test_another_bilstm_starts_afresh(tiny_folder: Path, tmp_path: Path, layers: int, width: int) -> None:
    asked: Build = lambda encoder: Tagger(encoder, 3, "bilstm-crf", (), width, layers)  # noqa: E731
    old, new, notes = other_head(tiny_folder, tmp_path, MODELS["bilstm-crf tagging"], asked)
    afresh = {note.split(" ")[0] for note in notes if "starts afresh" in note}
    assert afresh == ({"lstm"} if width == 6 else {"lstm", "classifier"})
    assert "crf is kept as the folder has it" in notes
    assert same(old.get_submodule("crf"), new.get_submodule("crf"))
    assert not torch.equal(old.get_submodule("lstm").weight_hh_l0[:4], new.get_submodule("lstm").weight_hh_l0[:4, :6])


def test_a_crf_joins_a_linear_tagger(tiny_folder: Path, tmp_path: Path) -> None:
    asked: Build = lambda encoder: Tagger(encoder, 3, "crf")  # noqa: E731
    old, new, notes = other_head(tiny_folder, tmp_path, MODELS["linear tagging"], asked)
    assert notes == ["classifier is kept as the folder has it", "crf starts afresh: the folder has none"]
    assert same(old.get_submodule("classifier"), new.get_submodule("classifier"))
    assert not any(parameter.any() for parameter in new.get_submodule("crf").parameters())


LABELLED = {"task": "classify", "labels": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (LABELLED | {"labels": ("a", "b", "c"), "max_length": 64}, None),
        (LABELLED | {"labels": ["b", "a", "c"]}, "other labels"),
        ({"task": "tag", "labels": ["a", "b", "c"]}, "the task classify"),
        (None, None),
    ],
)
def test_a_head_that_fits_is_kept_for_its_own_task_and_labels_only(
    tiny_folder: Path, tmp_path: Path, asked: dict[str, Any] | None, reason: str | None
) -> None:
    notes: list[str] = []
    model = stirred(load(tiny_folder, MODELS["classification"]))
    folder = save(model, tmp_path / "m", task=LABELLED)
    again = load(folder, MODELS["classification"], task=asked, note=notes.append)
    assert len(notes) == 1
    assert (f"classifier starts afresh: the folder's was made for {reason}" if reason else "is kept") in notes[0]
    assert same(model.get_submodule("classifier"), again.get_submodule("classifier")) == (reason is None)
    assert same(model.get_submodule("encoder"), again.get_submodule("encoder"))


def test_the_labels_in_config_json_count_where_there_is_no_task_json(tiny_folder: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    settings = {"architecture": "SequenceClassification", "labels": ("x", "y", "z")}
    folder = save(stirred(load(tiny_folder, MODELS["classification"])), tmp_path / "m", **settings)
    (folder / "task.json").unlink()
    load(folder, MODELS["classification"], task=LABELLED, note=notes.append)
    load(folder, MODELS["classification"], task=LABELLED | {"labels": ["x", "y", "z"]}, note=notes.append)
    assert ["starts afresh" in note for note in notes] == [True, False]


def test_random_weights_have_nothing_of_the_folder(tiny_folder: Path, tmp_path: Path) -> None:
    learned = stirred(load(tiny_folder, bio_tagger))
    folder = save(learned, tmp_path / "m")
    start, again, other, elsewhere = (
        start_for_task(read_folder(path), bio_tagger, seed)
        for path, seed in ((folder, 1), (folder, 1), (folder, 2), (tiny_folder, 1))
    )
    assert same(start, again) and same(start, elsewhere) and not same(start, other)
    for name, tensor in start.named_parameters():
        assert not torch.equal(tensor, learned.get_parameter(name)), name
    head = load(tiny_folder, bio_tagger, 1).get_submodule("lstm")
    assert same(start.get_submodule("lstm"), head)


class Mine(nn.Module):
    """A user's own model: a head of any layers, and a single number."""

    def __init__(self, encoder: Bert) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.ModuleDict({"gru": nn.GRU(32, 4), "out": nn.Linear(4, 2, bias=False)})
        self.head.scale = nn.Parameter(torch.ones(()))


def test_a_head_of_ones_own(tiny_folder: Path, tmp_path: Path) -> None:
    first, again, other = (load(tiny_folder, Mine, seed) for seed in (1, 1, 2))
    assert same(first, again) and not same(first, other)
    folder = save(stirred(first), tmp_path / "m")
    assert same(first, load(folder, Mine, seed=2, complete=True))
    assert load_encoder(read_folder(folder)).pooler is not None


def test_a_part_that_a_folder_has_no_place_for_is_refused_before_training(tiny_folder: Path) -> None:
    def build(encoder: Bert) -> nn.Module:
        model = SequenceClassifier(encoder, 2)
        model.scorer = nn.Linear(3, 2)
        return model

    with pytest.raises(HeedfulError, match=r"no place for scorer\.weight") as caught:
        load(tiny_folder, build)
    assert "`head`" in str(caught.value.remedy)


def edited(folder: Path, edit: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


QUERY = "bert.encoder.layer.1.attention.self.query.weight"
DAMAGED: dict[str, tuple[Callable[[dict[str, torch.Tensor]], object], str]] = {
    "no query": (lambda tensors: tensors.pop(QUERY), f"lack {QUERY}"),
    "half a head": (lambda tensors: tensors.pop("classifier.bias"), "lack classifier.bias"),
    "half a pooler": (lambda tensors: tensors.pop("bert.pooler.dense.bias"), "lack bert.pooler.dense.bias"),
    "another pooler": (lambda tensors: tensors.update({"bert.pooler.dense.bias": torch.ones(9)}), r"shape \[9\]"),
    "whole numbers": (lambda tensors: tensors.update({"classifier.bias": torch.ones(3, dtype=torch.int8)}), "I8"),
    "unknown": (lambda tensors: tensors.update({f"{QUERY}s": torch.ones(2)}), f"unknown tensor {QUERY}s"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_weights_are_refused(tiny_folder: Path, tmp_path: Path, case: str) -> None:
    folder = save(load(tiny_folder, MODELS["classification"]), tmp_path / "m")
    edit, message = DAMAGED[case]
    edited(folder, edit)
    for complete in (False, True):
        with pytest.raises(HeedfulError, match=message) as caught:
            load(folder, MODELS["classification"], complete=complete)
        assert str(folder) in str(caught.value.where) and caught.value.remedy


def test_a_truncated_file_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    folder = save(load(tiny_folder, MODELS["answering"]), tmp_path / "m")
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-1])
    with pytest.raises(HeedfulError, match="not a sound safetensors file"):
        load(folder, MODELS["answering"])


def test_the_task_is_kept_as_it_is(tiny_folder: Path, tmp_path: Path) -> None:
    task = {"task": "tag", "labels": BIO, "threshold": -1.5, "head": "bilstm-crf"}
    folder = save(load(tiny_folder, bio_tagger), tmp_path / "m", task=task)
    assert read_task(folder) == task | {"labels": list(BIO)}
    assert "B-人" in (folder / "task.json").read_text(encoding="utf-8")


def test_the_config_says_what_hugging_face_needs_to_know(tiny_folder: Path, tmp_path: Path) -> None:
    model = load(tiny_folder, MODELS["classification"])
    foreign = {"flavour": "野", "id2label": {"0": "old"}, "problem_type": "regression", "architectures": ["Old"]}
    classifier = "SequenceClassification"
    folder = save(model, tmp_path / "c", architecture=classifier, labels=("a", "b", "文"), foreign=foreign)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["BertForSequenceClassification"] and config["flavour"] == "野"
    assert config["id2label"] == {"0": "a", "1": "b", "2": "文"}
    assert config["label2id"] == {"a": 0, "b": 1, "文": 2}
    assert config["problem_type"] == "single_label_classification"
    folder = save(load(tiny_folder, MODELS["regression"]), tmp_path / "r", architecture=classifier, foreign=foreign)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert (config["problem_type"], config["id2label"]) == ("regression", {"0": "LABEL_0"})
    folder = save(load(tiny_folder, MODELS["answering"]), tmp_path / "a", foreign=foreign)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert not {"architectures", "id2label", "label2id", "problem_type"} & config.keys()


def test_saving_never_replaces_what_is_not_a_model(tiny_folder: Path, tmp_path: Path) -> None:
    model = load(tiny_folder, MODELS["answering"])
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(HeedfulError, match="not a model"):
        save(model, tmp_path, overwrite=True)
    folder = save(model, tmp_path / "m")
    with pytest.raises(HeedfulError, match="not empty"):
        save(model, folder)
    save(model, folder, task={"task": "newer"}, overwrite=True)
    assert read_task(folder) == {"task": "newer"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "thesis.txt"]


CLASSES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "labels": (
        {"architectures": ["BertForSequenceClassification"], "id2label": {"1": "bad", "0": "good", "2": "ugly"}},
        {"task": "classify", "labels": ["good", "bad", "ugly"]},
    ),
    "more than nine labels": (
        {"architectures": ["BertForTokenClassification"], "id2label": {str(i): f"l{i}" for i in reversed(range(12))}},
        {"task": "tag", "labels": [f"l{i}" for i in range(12)]},
    ),
    "two labels without names": (
        {"architectures": ["BertForSequenceClassification"]},
        {"task": "classify", "labels": ["LABEL_0", "LABEL_1"]},
    ),
    "one label": (
        {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}},
        {"task": "regress"},
    ),
    "regression": (
        {"architectures": ["BertForSequenceClassification"], "problem_type": "regression", "id2label": {"0": "score"}},
        {"task": "regress"},
    ),
    "answering": ({"architectures": ["BertForQuestionAnswering"]}, {"task": "answer"}),
    "choosing": ({"architectures": ["BertForMultipleChoice"]}, {"task": "choose"}),
}


@pytest.mark.parametrize("case", CLASSES)
def test_the_class_tells_the_task(tmp_path: Path, case: str) -> None:
    config, task = CLASSES[case]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"} | config))
    assert read_task(tmp_path) == task


CLASS = {"architectures": ["BertForTokenClassification"]}
NO_TASK: dict[str, tuple[dict[str, Any], str]] = {
    "pretraining": ({"architectures": ["BertForPreTraining"]}, "not fine-tuned"),
    "no class": ({}, "not fine-tuned"),
    "an empty list": ({"architectures": []}, "not fine-tuned"),
    "no list": ({"architectures": "BertForTokenClassification"}, "not fine-tuned"),
    "a gap": (CLASS | {"id2label": {"0": "a", "2": "b"}}, "id2label is not"),
    "a list of labels": (CLASS | {"id2label": ["a", "b"]}, "id2label is not"),
    "a number of labels": (CLASS | {"id2label": 2}, "id2label is not"),
    "one label twice": (CLASS | {"id2label": {"0": "a", "1": "a"}}, "id2label is not"),
}


@pytest.mark.parametrize("case", NO_TASK)
def test_a_folder_without_a_task_is_refused(tmp_path: Path, case: str) -> None:
    config, message = NO_TASK[case]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"} | config))
    with pytest.raises(HeedfulError, match=message) as caught:
        read_task(tmp_path)
    assert caught.value.where == tmp_path / "config.json" and caught.value.remedy


def test_bad_task_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match=r"no config\.json \(or bert_config\.json\)"):
        read_task(tmp_path)
    for content, message in [("{}", "does not name"), ('{"task": 3}', "does not name"), ("[", "not JSON")]:
        (tmp_path / "task.json").write_text(content)
        with pytest.raises(HeedfulError, match=message) as caught:
            read_task(tmp_path)
        assert "task.json" in str(caught.value.where)


def test_a_pretrained_folder_is_not_fine_tuned(tiny_folder: Path) -> None:
    with pytest.raises(HeedfulError, match="not fine-tuned"):
        read_task(tiny_folder)
