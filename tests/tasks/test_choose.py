"""Choosing among endings: how they are laid out and cut, the loss over different numbers of them, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from heedful.config import from_mapping, to_mapping
from heedful.data.labelled.dataset import Choice
from heedful.errors import HeedfulError
from heedful.tasks.choose import Choose
from heedful.tasks.finetuning import predict
from heedful.tasks.task import Item
from heedful.text.tokenizer import Tokenizer

EXAMPLES = [
    Choice("", "the cat sees", ("the dog", "un", "北京"), 0),
    Choice("", "the dog loves", ("!", "the cat"), 1),
    Choice("我爱", "who?", ("中国", "美国", "苹果", "dog"), 2),
    Choice("the dog", "", ("sees", "?"), 0),
    Choice("cat cat", "what?", ("dog", "cat", "the"), 1),
    Choice("dog dog", "what?", ("dog", "cat", "the"), 0),
    Choice("", "un", ("affordable", "cat"), 1),
    Choice("中国", "", ("北京", "苹果", "。"), 2),
]


def tokens(item: Item, tokenizer: Tokenizer) -> list[str]:
    return [" ".join(tokenizer.vocabulary[i] for i in window.ids) for window in item.windows]


def test_each_ending_has_its_window(tiny_tokenizer: Tokenizer) -> None:
    items = Choose().encode(EXAMPLES, tiny_tokenizer)
    assert tokens(items[0], tiny_tokenizer) == [
        "[CLS] the cat sees [SEP] the dog [SEP]",
        "[CLS] the cat sees [SEP] un [SEP]",
        "[CLS] the cat sees [SEP] 北 京 [SEP]",
    ]
    assert tokens(items[4], tiny_tokenizer)[0] == "[CLS] cat cat [SEP] w ##h ##a ##t ? dog [SEP]"
    assert tokens(items[3], tiny_tokenizer) == ["[CLS] the dog [SEP] sees [SEP]", "[CLS] the dog [SEP] ? [SEP]"]
    assert items[0].windows[0].segments == [0] * 5 + [1] * 3
    assert [item.target for item in items] == [(e.label, len(e.endings)) for e in EXAMPLES]
    assert {item.weight for item in items} == {1}
    assert all(window.rows == [0] for item in items for window in item.windows)


def test_what_does_not_fit_is_cut_at_the_left(tiny_tokenizer: Tokenizer) -> None:
    example = Choice("the dog sees the cat", "love", ("the dog", "cat"))
    (item,) = Choose(max_length=9).encode([example], tiny_tokenizer)
    assert tokens(item, tiny_tokenizer) == [
        "[CLS] sees the cat [SEP] love the dog [SEP]",
        "[CLS] dog sees the cat [SEP] love cat [SEP]",
    ]
    (item,) = Choose(max_length=5).encode([example], tiny_tokenizer)
    assert tokens(item, tiny_tokenizer) == ["[CLS] [SEP] the dog [SEP]", "[CLS] [SEP] love cat [SEP]"]
    assert item.target == () and item.cut
    (whole,) = Choose(max_length=12).encode([example], tiny_tokenizer)
    assert not whole.cut
    with pytest.raises(HeedfulError, match="no room"):
        Choose(max_length=3).encode([example], tiny_tokenizer)


def test_the_loss_is_a_softmax_over_each_examples_own_endings(tiny_tokenizer: Tokenizer) -> None:
    items = Choose().encode(EXAMPLES, tiny_tokenizer)
    counts = [len(item.windows) for item in items]
    outputs = torch.randn(sum(counts), 1, generator=torch.Generator().manual_seed(0), requires_grad=True)
    targets = torch.tensor([number for item in items for number in item.target])
    loss = Choose().loss(torch.nn.Identity(), outputs, [1] * sum(counts), targets)
    pairs = zip(outputs.squeeze(-1).split(counts), EXAMPLES, strict=True)
    expected = sum(F.cross_entropy(logits, torch.tensor(example.label)) for logits, example in pairs)
    torch.testing.assert_close(loss, expected)
    (found,), (wanted,) = (torch.autograd.grad(value, outputs, retain_graph=True) for value in (loss, expected))
    torch.testing.assert_close(found, wanted)


def test_it_learns(trained: Callable[..., Any], tiny_tokenizer: Tokenizer) -> None:
    result = trained(Choose.fit(EXAMPLES), EXAMPLES)
    assert result.after < 0.5 * result.before
    found = predict(Choose(), result.model, EXAMPLES, tiny_tokenizer)
    assert Choose().score(EXAMPLES, found)["accuracy"] > 0.8
    for example, one in zip(EXAMPLES, found, strict=True):
        assert one["ending"] == example.endings[one["label"]]
        assert one["probability"] == max(one["probabilities"]) and sum(one["probabilities"]) == pytest.approx(1)
        assert len(one["probabilities"]) == len(example.endings)
    json.dumps(found)


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_it_learns_from_all_tokens_which_hugging_face_has_no_class_for(
    pooling: Any, trained: Callable[..., Any]
) -> None:
    task = Choose.fit(EXAMPLES, pooling=pooling)
    result = trained(task, EXAMPLES)
    assert result.after < result.before / 2
    assert task.architecture is None and Choose.fit(EXAMPLES).architecture == "MultipleChoice"
    assert to_mapping(task)["pooling"] == pooling


def test_what_a_caller_may_give() -> None:
    given = {"context": "我爱", "question": "who?", "choices": ["中国", "美国"]}
    assert Choose.example(given) == Choice("我爱", "who?", ("中国", "美国"))
    assert Choose.example({"question": "un", "endings": ("a", "b")}) == Choice("", "un", ("a", "b"))
    assert Choose.example(EXAMPLES[0]) is EXAMPLES[0]
    for wrong in ("text", {"choices": "ab"}, {"choices": ["one"]}, {"choices": ["a", 3]}, {"context": "x"}, ["a", "b"]):
        with pytest.raises(HeedfulError, match="not understood"):
            Choose.example(wrong)


def test_a_label_that_is_no_ending_is_refused_with_its_place() -> None:
    for label in (None, 2, -1):
        with pytest.raises(HeedfulError, match=r"one of 2 endings(.|\n)*dev\.jsonl:4(.|\n)*from 0 to 1"):
            Choose().check([EXAMPLES[0], Choice("", "q", ("a", "b"), label, "dev.jsonl:4")])
    with pytest.raises(HeedfulError, match="no examples"):
        Choose.fit([])


def test_the_task_is_kept_as_json() -> None:
    task = Choose(max_length=256, features=(-1,))
    assert from_mapping(Choose, json.loads(json.dumps(to_mapping(task))), "task.json") == task
