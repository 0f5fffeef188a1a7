"""Heads over the last row, as GPT-2 and XLNet have it: folders of either side give the same logits on the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from heedful.checkpoints.conversion import convert
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import load_for_task, read_task, save_for_task
from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder
from heedful.models.heads import SequenceClassifier, SpanFinder, Tagger
from heedful.nn.pooling import last_rows
from heedful.schema import Selection

GPT = transformers.GPT2Config(vocab_size=60, n_embd=24, n_layer=2, n_head=3, n_positions=64)
XLNET = transformers.XLNetConfig(vocab_size=60, d_model=24, n_layer=2, n_head=3, d_inner=40)
LABELS = ("O", "B-PER", "I-PER")
LENGTHS = (17, 9, 9, 1)


@dataclass(frozen=True)
class Kind:
    """A class of theirs, the model of ours, and the task."""

    name: str
    build: Callable[[Encoder], nn.Module]
    task: dict[str, Any]
    outputs: int
    every_token: bool = False

    @property
    def purpose(self) -> str:
        return "QuestionAnswering" if "QuestionAnswering" in self.name else self.name.split("For")[1]


def classifier(labels: int) -> Callable[[Encoder], nn.Module]:
    return lambda encoder: SequenceClassifier(encoder, labels)


def tagger(encoder: Encoder) -> nn.Module:
    return Tagger(encoder, 3)


LABELLED = {"labels": list(LABELS)}
KINDS = [
    Kind("GPT2ForSequenceClassification", classifier(3), {"task": "classify", **LABELLED}, 3),
    Kind("GPT2ForSequenceClassification", classifier(1), {"task": "regress"}, 1),
    Kind("GPT2ForTokenClassification", tagger, {"task": "tag", **LABELLED}, 3, every_token=True),
    Kind("GPT2ForQuestionAnswering", SpanFinder, {"task": "answer"}, 2, every_token=True),
    Kind("XLNetForSequenceClassification", classifier(3), {"task": "classify", **LABELLED}, 3),
    Kind("XLNetForSequenceClassification", classifier(1), {"task": "regress"}, 1),
    Kind("XLNetForTokenClassification", tagger, {"task": "tag", **LABELLED}, 3, every_token=True),
    Kind("XLNetForQuestionAnsweringSimple", SpanFinder, {"task": "answer"}, 2, every_token=True),
    Kind("XLNetForMultipleChoice", classifier(1), {"task": "choose"}, 1),
]


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind.name}-{kind.task['task']}")
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


def theirs_of(kind: Kind) -> transformers.PreTrainedModel:
    """Their model with random weights; norms stay about one."""
    config = (GPT if kind.name.startswith("GPT2") else XLNET).to_dict()
    named = {"id2label": dict(enumerate(LABELS))} if "labels" in kind.task else {"num_labels": kind.outputs}
    model_class = getattr(transformers, kind.name)
    model = model_class(model_class.config_class(**{**config, "id2label": None, "label2id": None, **named}))
    rng = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(float("norm.weight" in name or "ln_" in name), 0.2, generator=rng)
    return model.eval()


def selection_of(kind: Kind) -> Selection:
    rng = torch.Generator().manual_seed(0)
    batch = flat_batch([torch.randint(1, 60, (n,), generator=rng).tolist() for n in LENGTHS])
    if kind.every_token:
        return Selection(batch, torch.arange(sum(LENGTHS)), LENGTHS)
    return Selection(batch, last_rows(LENGTHS), (1,) * len(LENGTHS))


@torch.inference_mode()
def assert_same_logits(ours: nn.Module, theirs: transformers.PreTrainedModel, kind: Kind) -> None:
    """Theirs one text after the other, so that nothing is padded."""
    selection, expected = selection_of(kind), []
    for ids in selection.batch.ids.split(LENGTHS):
        if kind.task["task"] == "choose":
            expected.append(theirs(ids[None, None]).logits)
        elif kind.task["task"] == "answer":
            found = theirs(ids[None])
            expected.append(torch.stack([found.start_logits, found.end_logits], dim=-1)[0])
        else:
            expected.append(theirs(ids[None]).logits.view(-1, kind.outputs))
    found = ours.eval()(selection)
    assert found.std() > 0.1
    torch.testing.assert_close(found, torch.cat(expected), rtol=1e-5, atol=1e-5)


def test_their_folder_here(kind: Kind, tmp_path: Path) -> None:
    theirs = theirs_of(kind)
    theirs.save_pretrained(tmp_path / "theirs")
    assert read_task(tmp_path / "theirs") == kind.task
    ours = load_for_task(read_folder(tmp_path / "theirs"), kind.build, seed=0, complete=True)
    assert_same_logits(ours, theirs, kind)
    convert(tmp_path / "theirs", tmp_path / "converted")
    again, info = type(theirs).from_pretrained(tmp_path / "converted", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert_same_logits(ours, again.eval(), kind)


def test_our_folder_there(kind: Kind, tmp_path: Path) -> None:
    theirs_of(kind).save_pretrained(tmp_path / "start")
    ours = load_for_task(read_folder(tmp_path / "start"), kind.build, seed=0)
    named = {"task": kind.task, "architecture": kind.purpose, "labels": kind.task.get("labels", ())}
    save_for_task(ours, tmp_path / "ours", None, **named)
    theirs, info = getattr(transformers, kind.name).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert_same_logits(ours, theirs.eval(), kind)


def test_a_head_with_more_than_the_class_has_is_not_taken_for_it(tmp_path: Path) -> None:
    """A GPT's classifier with a bias computes something else than one without."""
    kind = KINDS[0]
    theirs_of(kind).save_pretrained(tmp_path / "start")
    told: list[str] = []
    model = load_for_task(
        read_folder(tmp_path / "start"),
        lambda encoder: SequenceClassifier(encoder, 3, (-1,)),
        seed=0,
        task={**kind.task, "features": [-1]},
        note=told.append,
    )
    assert told == ["classifier starts afresh: the folder's was made for other layers"]
    save_for_task(model, tmp_path / "features", None, task={**kind.task, "features": [-1]}, architecture=None)
    with pytest.raises(HeedfulError, match="classifier: the folder's has another shape"):
        load_for_task(read_folder(tmp_path / "features"), kind.build, seed=0, complete=True)
