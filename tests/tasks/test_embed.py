"""Sentence vectors: the loss by its formula, gradient caching, what counts as a negative, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from heedful.data.labelled.dataset import Columns, SentencePair
from heedful.errors import HeedfulError
from heedful.tasks.classify import Classify
from heedful.tasks.embed import Embed, contrastive_loss
from heedful.tasks.finetuning import TaskObjective, predict
from heedful.tasks.items import ItemSource, JointMicroBatch, micro_batch_of
from heedful.tasks.task import Task
from heedful.text.rows import Rows
from heedful.text.tokenizer import Tokenizer

PAIRS = [
    SentencePair("the cat", "cat"),
    SentencePair("the dog", "dog sees"),
    SentencePair("love", "love the", ("un", "un dog")),
    SentencePair("a b c d e", "f g"),
    SentencePair("unaffordable", "the dog sees the cat", ("h",)),
]
Small = Callable[[Task[Any]], nn.Module]


def unit(count: int, seed: int = 0) -> torch.Tensor:
    return F.normalize(torch.randn(count, 6, generator=torch.Generator().manual_seed(seed)), dim=-1)


def test_the_loss_is_a_softmax_over_the_other_texts_of_the_batch() -> None:
    vectors, rows = unit(7), [(0, 1), (2, 3, 4), (5, 6)]
    found = contrastive_loss(vectors, rows, 0.1)
    expected = 0.0
    for anchor, right in ((0, 1), (2, 3), (5, 6)):
        weights = {c: math.exp(float(vectors[anchor] @ vectors[c]) / 0.1) for c in (1, 3, 6, 4)}
        expected -= math.log(weights[right] / sum(weights.values()))
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_without_negatives_of_its_own_it_is_the_loss_of_sentence_transformers() -> None:
    vectors = unit(8)
    theirs = F.cross_entropy(vectors[0::2] @ vectors[1::2].T * 20, torch.arange(4), reduction="sum")
    rows = [(2 * n, 2 * n + 1) for n in range(4)]
    assert torch.allclose(contrastive_loss(vectors, rows, 0.05), theirs)


@pytest.mark.parametrize(
    ("rows", "candidates"),
    [
        ([(0, 1), (2, 1), (3, 4)], {0: (1, 5), 2: (3, 5), 4: (1, 3, 5)}),  # the same second text
        ([(0, 1), (0, 2), (3, 4)], {0: (1, 5), 2: (3, 5), 4: (1, 3, 5)}),  # the same first text
        ([(0, 1), (2, 0), (3, 4)], {0: (1, 5), 2: (1, 3, 5), 4: (1, 3, 5)}),  # the first text of one, second of another
        ([(0, 0), (0, 0), (3, 3)], {0: (1, 5), 2: (3, 5), 4: (1, 3, 5)}),  # the same line twice
    ],
)
def test_what_means_the_same_is_no_negative(rows: list[Any], candidates: dict[int, tuple[int, ...]]) -> None:
    vectors = unit(6)
    expected = 0.0
    for anchor, among in candidates.items():
        weights = [math.exp(float(vectors[anchor] @ vectors[c]) / 0.05) for c in among]
        expected -= math.log(math.exp(float(vectors[anchor] @ vectors[anchor + 1]) / 0.05) / sum(weights))
    assert float(contrastive_loss(vectors, rows, 0.05)) == pytest.approx(expected, rel=1e-4)


def gradients(model: nn.Module, task: Embed, micro_batch: Any) -> tuple[float, list[torch.Tensor]]:
    model.zero_grad()
    torch.manual_seed(5)
    (loss,) = TaskObjective(task)(model, micro_batch).values()
    loss.backward()
    return float(loss.detach()), [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_in_parts_the_gradients_are_those_of_the_whole_batch(
    pooling: str, small_model: Small, tiny_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Embed(pooling=pooling)  # type: ignore[arg-type]
    # All of it in float64, the loss too: how float32 is rounded differs from processor to processor.
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    model, items = small_model(task).double(), task.encode(PAIRS, tiny_tokenizer)
    whole, expected = gradients(model, task, micro_batch_of(items, "embed"))
    source = ItemSource(items, "embed", len(items), seed=1, whole=True)
    for parts in (1, 2, 5):
        (joint,) = source.step(0, accumulate=parts)
        assert isinstance(joint, JointMicroBatch) and len(joint.parts) == parts
        assert joint.counts == {"embed": len(items)} and joint.tokens == sum(item.tokens for item in items)
        found, own = gradients(model, task, joint)
        assert found == pytest.approx(whole, rel=1e-12)
        for a, b in zip(own, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-13)


def test_what_is_computed_again_has_the_same_dropout(small_model: Small, tiny_tokenizer: Tokenizer) -> None:
    task = Embed()
    model = small_model(task).train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.3
    items = task.encode(PAIRS, tiny_tokenizer)
    (joint,) = ItemSource(items, "embed", len(items), seed=1, whole=True).step(0, accumulate=3)
    found, own = gradients(model, task, joint)
    model.zero_grad()
    torch.manual_seed(5)
    outputs = torch.cat([model(part.selection) for part in joint.parts])
    loss = task.loss(model, outputs, (), torch.cat([part.targets for part in joint.parts]))
    loss.backward()
    assert found == pytest.approx(float(loss.detach()))
    for a, b in zip(own, [p.grad for p in model.parameters() if p.grad is not None], strict=True):
        torch.testing.assert_close(a, b)


def test_a_batch_is_not_shared_by_processes(tiny_tokenizer: Tokenizer) -> None:
    items = Embed().encode(PAIRS, tiny_tokenizer)
    with pytest.raises(HeedfulError, match="2 processes"):
        ItemSource(items, "embed", 4, seed=1, whole=True).check(2, 1)


@pytest.mark.parametrize("examples", [PAIRS, [SentencePair(one.text) for one in PAIRS]])
def test_it_learns_from_pairs_and_from_lines(
    examples: Sequence[SentencePair], trained: Callable[..., Any], tiny_tokenizer: Tokenizer
) -> None:
    task = Embed.fit(examples)
    assert task.learns == ("pairs" if examples[0].pair else "lines")
    found = trained(task, examples)
    assert found.after < found.before
    answers = predict(task, found.model, examples, tiny_tokenizer)
    assert ("similarity" in answers[0]) == (task.learns == "pairs")


def test_it_learns_scores(trained: Callable[..., Any], tiny_tokenizer: Tokenizer) -> None:
    rows = [SentencePair(one.text, one.pair, (), score) for one, score in zip(PAIRS, (0, 1, 2, 4, 5), strict=True)]
    task = Embed.fit(rows)
    assert (task.learns, task.low, task.high) == ("scored", 0.0, 5.0)
    assert [item.target for item in task.encode(rows, tiny_tokenizer)] == [(0.0,), (0.2,), (0.4,), (0.8,), (1.0,)]
    found = trained(task, rows)
    assert found.after < found.before / 4
    assert task.score(rows, predict(task, found.model, rows, tiny_tokenizer))["spearman"] > 0.8


def test_a_line_is_read_twice_to_learn_and_once_else(tiny_tokenizer: Tokenizer) -> None:
    assert [len(item.windows) for item in Embed(learns="lines").encode([SentencePair("cat")], tiny_tokenizer)] == [2]
    assert [len(item.windows) for item in Embed().encode([SentencePair("cat")], tiny_tokenizer)] == [1]


def test_the_dev_data_tells_what_decides() -> None:
    task = Embed()
    assert task.decides([SentencePair("a", "b", (), 1.0)]) == "spearman"
    assert (task.decides(PAIRS), task.decides([SentencePair("a")])) == ("mrr", "uniformity")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", "a"), ("b", " b")], "the same text again"),
        ([("a", "b"), ("a", "b ")], "all pairs are the same two texts"),
        ([("a", "b"), ("b", "a")], "all pairs are the same two texts"),
        ([("a", "b"), ("a", "c"), ("a ", "d")], "the same first text"),
        ([("a", "b"), ("c", "b"), ("d", " b")], "the same second text"),
        ([("a", None), ("a ", None)], "all lines are the same"),
        ([("a", "b", 3.0), ("c", "d", 3.0)], "score 3"),
        ([("a", "b", 1.0), ("c", "d", 101.0)], "101 is out of range"),
        ([("a", "b", -3.0), ("c", "d", 4.0)], "-3 is out of range"),
    ],
)
def test_data_from_which_nothing_can_be_learned_is_refused(rows: list[Any], said: str) -> None:
    examples = [SentencePair(row[0], row[1], (), row[2] if len(row) > 2 else None, "a.tsv:2") for row in rows]
    with pytest.raises(HeedfulError, match=said) as caught:
        Embed.fit(examples)
    assert caught.value.where == "a.tsv:2" and ("different texts" in str(caught.value)) == (len(rows[0]) == 2)


def test_cosines_are_a_scale_of_their_own() -> None:
    rows = [SentencePair("a", "b", (), -0.5), SentencePair("a", "c", (), 0.9)]
    assert (Embed.fit(rows).low, Embed.fit(rows).high) == (0.0, 1.0)


def test_a_score_that_makes_the_scale_larger_is_told() -> None:
    rows = [SentencePair("a", f"b {n}", (), float(n % 6), f"a.tsv:{n}") for n in range(150)]
    assert not Embed.fit(rows).doubtful(rows)
    for odd, said in (
        ({7: 50.0}, "1 scores above 10: because of them 100, not 10"),
        ({7: 8.0}, "above 5: because of them 10, not 5"),
    ):
        changed = [replace(one, score=odd.get(n, one.score)) for n, one in enumerate(rows)]
        told = [str(remark) for remark in Embed.fit(changed).doubtful(changed)]
        assert len(told) == 1 and said in told[0] and "a.tsv:7" in told[0]
    tens = [replace(one, score=2 * (one.score or 0)) for one in rows]
    assert Embed.fit(tens).high == 10 and not Embed.fit(tens).doubtful(tens)


def test_inputs_from_python() -> None:
    for given in ("a", ("a", "b"), {"text": "a"}, {"text": "a", "pair": "b"}, SentencePair("a")):
        assert Embed.example(given).text == "a"
    for wrong in (3, ("a", 3), {"sentence": "a"}, ("a", "b", "c")):
        with pytest.raises(HeedfulError, match="not understood"):
            Embed.example(wrong)


def test_lines_in_memory_are_texts() -> None:
    found = Embed.read_data(Rows(["the cat", "a dog"]), Columns()).examples
    assert [(one.text, one.pair) for one in found] == [("the cat", None), ("a dog", None)]
    with pytest.raises(HeedfulError, match="no column is known to hold the label"):
        Classify.read_data(Rows(["the cat"]), Columns())
