"""The losses of all tasks but plain classification against those of `transformers`, on the same weights and batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch.nn.utils.rnn import pad_sequence

from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import load_for_task
from heedful.data.labelled import dataset
from heedful.data.labelled.conll import tagged_from_words
from heedful.data.labelled.dataset import Choice, MultiLabelRow, Question
from heedful.tasks.answer import Answer
from heedful.tasks.choose import Choose
from heedful.tasks.finetuning import TaskObjective
from heedful.tasks.items import micro_batch_of
from heedful.tasks.multilabel import MultiLabel
from heedful.tasks.tag import Tag
from heedful.tasks.task import Item, Task, Window
from heedful.text.tokenizer import Tokenizer

Foreign = Callable[..., tuple[Any, Path]]


@pytest.fixture
def foreign(tiny_tokenizer: Tokenizer, tmp_path: Path) -> Foreign:
    """A random model of a transformers class, and the folder that it is saved in."""

    def make(name: str, **options: Any) -> tuple[Any, Path]:
        torch.manual_seed(0)
        shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
        config = transformers.BertConfig(vocab_size=tiny_tokenizer.vocab_size, **shape, **options)
        model = getattr(transformers, name)(config).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        model.save_pretrained(tmp_path / name)
        return model, tmp_path / name

    return make


def padded(windows: Sequence[Window]) -> dict[str, torch.Tensor]:
    """The windows as Hugging Face takes them."""
    columns = {
        "input_ids": [torch.tensor(window.ids) for window in windows],
        "token_type_ids": [torch.tensor(window.segments) for window in windows],
        "attention_mask": [torch.ones(len(window.ids), dtype=torch.long) for window in windows],
    }
    return {name: pad_sequence(rows, batch_first=True) for name, rows in columns.items()}


def mean_loss(task: Task[Any], folder: Path, items: Sequence[Item]) -> float:
    model = load_for_task(read_folder(folder), task.model, seed=0).eval()
    micro_batch = micro_batch_of(items, "loss")
    return float(TaskObjective(task)(model, micro_batch)["loss"].detach()) / micro_batch.weight


def test_tagging(foreign: Foreign, tiny_tokenizer: Tokenizer) -> None:
    sentences = [
        tagged_from_words(["the", "unaffordable", "cat", "sees"], ["O", "B-X", "I-X", "O"]),
        tagged_from_words(["dog"], ["B-X"]),
        tagged_from_words(["我", "爱", "北", "京", "loves"], ["O", "O", "B-X", "I-X", "O"]),
    ]
    task = Tag.fit(sentences)
    theirs, folder = foreign("BertForTokenClassification", num_labels=3)
    items = task.encode(sentences, tiny_tokenizer)
    batch = padded([item.windows[0] for item in items])
    labels = torch.full_like(batch["input_ids"], -100)
    for row, item in zip(labels, items, strict=True):
        row[item.windows[0].rows] = torch.tensor([int(label) for label in item.target])
    expected = theirs(**batch, labels=labels).loss
    assert mean_loss(task, folder, items) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_answering(foreign: Foreign, tiny_tokenizer: Tokenizer) -> None:
    """Hugging Face's softmax is over question and padding too: here over windows of one length with all their rows."""
    questions = [
        Question("1", "the cat", "the dog sees a cat", (dataset.Answer("dog sees", 4),)),
        Question("2", "我爱", "苹果 the dog 。", (dataset.Answer("苹果", 0),)),
        Question("3", "中国", "a cat a dog a"),
    ]
    theirs, folder = foreign("BertForQuestionAnswering")
    items = []
    for item in Answer().encode(questions, tiny_tokenizer):
        (window,) = item.windows
        everything = Window(window.ids, window.segments, list(range(len(window.ids))))
        target = tuple(window.rows[int(row)] for row in item.target)
        items.append(Item(item.example, (everything,), target))
    batch = padded([item.windows[0] for item in items])
    assert batch["attention_mask"].all()
    starts, ends = torch.tensor([item.target for item in items]).unbind(-1)
    expected = theirs(**batch, start_positions=starts, end_positions=ends).loss
    assert mean_loss(Answer(), folder, items) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_choosing(foreign: Foreign, tiny_tokenizer: Tokenizer) -> None:
    choices = [
        Choice("", "the cat sees", ("the dog", "un", "北京"), 2),
        Choice("我爱", "who?", ("中国", "unaffordable cat", "dog"), 0),
    ]
    theirs, folder = foreign("BertForMultipleChoice")
    items = Choose().encode(choices, tiny_tokenizer)
    batch = padded([window for item in items for window in item.windows])
    expected = theirs(
        **{name: column.view(2, 3, -1) for name, column in batch.items()}, labels=torch.tensor([2, 0])
    ).loss
    assert mean_loss(Choose(), folder, items) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_several_labels(foreign: Foreign, tiny_tokenizer: Tokenizer) -> None:
    theirs, folder = foreign("BertForSequenceClassification", num_labels=3, problem_type="multi_label_classification")
    texts = {"the cat": ("a", "c"), "love the dog": ("b",), "un": ()}
    rows = [MultiLabelRow(text, labels=labels) for text, labels in texts.items()]
    items = MultiLabel(labels=("a", "b", "c")).encode(rows, tiny_tokenizer)
    wanted = torch.tensor([[float(label in labels) for label in "abc"] for labels in texts.values()])
    expected = theirs(**padded([item.windows[0] for item in items]), labels=wanted).loss.detach()
    assert mean_loss(MultiLabel(labels=("a", "b", "c")), folder, items) == pytest.approx(float(expected), rel=1e-5)
