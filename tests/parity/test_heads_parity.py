"""Models with heads against `transformers`: folders of either side give the same logits on the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import load_for_task, read_task, save_for_task
from heedful.data.batching import flat_batch
from heedful.models.bert import Bert, BertConfig, BertForPretraining
from heedful.models.heads import SequenceClassifier, SpanFinder, Tagger
from heedful.nn.pooling import first_rows
from heedful.schema import Selection

SHAPE = {
    "vocab_size": 60,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
}
LENGTHS = (64, 17, 17, 5, 2)
LABELS = ("O", "B-PER", "I-PER")


@dataclass(frozen=True)
class Kind:
    """A class of theirs, the model of ours, the task, and the labels it has."""

    name: str
    build: Callable[[Bert], nn.Module]
    task: dict[str, Any]
    labels: tuple[str, ...] = ()
    every_token: bool = False


KINDS = {
    "classification": Kind(
        "BertForSequenceClassification",
        lambda encoder: SequenceClassifier(encoder, 3),
        {"task": "classify", "labels": list(LABELS)},
        LABELS,
    ),
    "several labels": Kind(
        "BertForSequenceClassification",
        lambda encoder: SequenceClassifier(encoder, 3),
        {"task": "multilabel", "labels": list(LABELS)},
        LABELS,
    ),
    "regression": Kind(
        "BertForSequenceClassification", lambda encoder: SequenceClassifier(encoder, 1), {"task": "regress"}
    ),
    "tagging": Kind(
        "BertForTokenClassification",
        lambda encoder: Tagger(encoder, 3),
        {"task": "tag", "labels": list(LABELS)},
        LABELS,
        every_token=True,
    ),
    "answering": Kind("BertForQuestionAnswering", SpanFinder, {"task": "answer"}, every_token=True),
    "choices": Kind("BertForMultipleChoice", lambda encoder: SequenceClassifier(encoder, 1), {"task": "choose"}),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def stirred(model: nn.Module) -> nn.Module:
    """The model with random weights; norms stay about one, so that differences come through to the logits."""
    rng = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(float(name.lower().endswith("norm.weight")), 0.2, generator=rng)
    return model.eval()


def selection_of(kind: Kind) -> Selection:
    rng = torch.Generator().manual_seed(0)
    ids, segments = ([torch.randint(top, (n,), generator=rng).tolist() for n in LENGTHS] for top in (60, 2))
    batch = flat_batch(ids, segments)
    if kind.every_token:
        return Selection(batch, torch.arange(sum(LENGTHS)), LENGTHS)
    return Selection(batch, first_rows(LENGTHS), (1,) * len(LENGTHS))


@torch.inference_mode()
def their_logits(model: transformers.PreTrainedModel, kind: Kind, selection: Selection) -> torch.Tensor:
    """(R, K), computed padded; the choices are all of one question."""
    flat = (selection.batch.ids, selection.batch.segments, torch.ones(sum(LENGTHS), dtype=torch.long))
    ids, segments, mask = (pad_sequence(list(x.split(LENGTHS)), batch_first=True) for x in flat)
    if kind.name == "BertForMultipleChoice":
        ids, segments, mask = ids[None], segments[None], mask[None]
    found = model(input_ids=ids, token_type_ids=segments, attention_mask=mask)
    if kind.name == "BertForMultipleChoice":
        return found.logits.view(-1, 1)
    if kind.name == "BertForQuestionAnswering":
        logits = torch.stack([found.start_logits, found.end_logits], dim=-1)
    else:
        logits = found.logits
    return torch.cat([rows[:n] for rows, n in zip(logits, LENGTHS, strict=True)]) if kind.every_token else logits


@torch.inference_mode()
def assert_same_logits(ours: nn.Module, theirs: transformers.PreTrainedModel, kind: Kind) -> None:
    selection = selection_of(kind)
    found, expected = ours(selection), their_logits(theirs.eval(), kind, selection)
    assert found.shape == expected.shape and found.std() > 0.1
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_their_folder_here(kind: Kind, tmp_path: Path) -> None:
    named = {"id2label": dict(enumerate(kind.labels))} if kind.labels else {}
    alone = {"num_labels": 1} if kind.task["task"] == "regress" else {}
    many = {"problem_type": "multi_label_classification"} if kind.task["task"] == "multilabel" else {}
    theirs = getattr(transformers, kind.name)(transformers.BertConfig(**SHAPE, **named, **alone, **many))
    stirred(theirs).save_pretrained(tmp_path / "theirs")
    assert read_task(tmp_path / "theirs") == kind.task
    ours = load_for_task(read_folder(tmp_path / "theirs"), kind.build, seed=0, complete=True)
    assert_same_logits(ours, theirs, kind)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("start") / "pretrained"
    model = BertForPretraining(BertConfig(**SHAPE))
    stirred(model)
    save_model(model, path, None)
    return path


def test_our_folder_there(kind: Kind, pretrained: Path, tmp_path: Path) -> None:
    ours = stirred(load_for_task(read_folder(pretrained), kind.build, seed=0))
    save_for_task(
        ours,
        tmp_path / "ours",
        None,
        task={"task": kind.task["task"]},
        architecture=kind.name.removeprefix("BertFor"),
        labels=kind.labels,
    )
    theirs, info = getattr(transformers, kind.name).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
    assert_same_logits(ours, theirs, kind)
    if kind.labels:
        assert theirs.config.id2label == dict(enumerate(kind.labels))
        assert theirs.config.label2id == {label: number for number, label in enumerate(kind.labels)}
    theirs.save_pretrained(tmp_path / "back")
    assert read_task(tmp_path / "back") == kind.task
    back = load_for_task(read_folder(tmp_path / "back"), kind.build, seed=0, complete=True).state_dict()
    assert all(torch.equal(tensor, back[name]) for name, tensor in ours.state_dict().items())


def test_the_emissions_of_a_crf_are_a_token_classifier_there(pretrained: Path, tmp_path: Path) -> None:
    ours = stirred(load_for_task(read_folder(pretrained), lambda encoder: Tagger(encoder, 3, "crf"), seed=0))
    save_for_task(ours, tmp_path / "ours", None, task={"task": "tag"}, architecture=None, labels=LABELS)
    theirs, info = transformers.BertForTokenClassification.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert set(info["unexpected_keys"]) == {f"tagger.crf.{name}" for name in ("starts", "transitions", "ends")}
    assert not info["missing_keys"] and not info["mismatched_keys"]
    assert_same_logits(ours, theirs, KINDS["tagging"])


def test_dropout_is_where_theirs_is(pretrained: Path) -> None:
    """With the probability at its extreme, only the bias of the last layer comes through; answering has no dropout."""
    folder = read_folder(pretrained)
    for kind in KINDS.values():
        model = stirred(load_for_task(folder, kind.build, seed=0)).train()
        dropout = getattr(model, "dropout", None)
        assert (dropout is None) == (kind.name == "BertForQuestionAnswering")
        if dropout is not None:
            dropout.p = 1.0
            outputs = model(selection_of(kind))
            assert torch.equal(outputs, model.get_submodule("classifier").bias.expand_as(outputs))
