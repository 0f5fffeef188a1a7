"""Windows change nothing where they agree: whatever the lengths and strides, a long text reads as a whole one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heedful.data.labelled.conll import tagged_from_words
from heedful.data.labelled.dataset import Question
from heedful.models.bert import Bert, BertConfig
from heedful.tasks.answer import Answer
from heedful.tasks.tag import Tag
from heedful.tasks.task import Item
from heedful.text.tokenizer import Tokenizer

LABELS = ("O", "B-X", "I-X")
WORDS = ["cat", "unaffordable", "中", "\u200b", "loves", "zebra"]  # of one piece, several, and none
MOST_WINDOWS = 40 * 12  # one for every piece, at the utmost
PROPERTY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def encoder(tiny_tokenizer: Tokenizer) -> Bert:
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    return Bert(BertConfig(vocab_size=tiny_tokenizer.vocab_size, **size))


def cut(items: list[Item], scores: torch.Tensor) -> list[list[torch.Tensor]]:
    """What windows say that all give a word the same scores (words, K)."""
    return [[scores[[word for word, _ in item.spans]]] for item in items]


@PROPERTY
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=40), st.integers(3, 30), st.data())
def test_every_word_goes_by_the_window_that_shows_most_around_it(
    tiny_tokenizer: Tokenizer, encoder: Bert, words: list[str], max_length: int, data: st.DataObject
) -> None:
    task = Tag(max_length, data.draw(st.integers(0, max_length - 2)), labels=tuple(map(str, range(MOST_WINDOWS))))
    sentence = tagged_from_words(words)
    items = task.encode([sentence], tiny_tokenizer)
    # Each window labels all of its words with its own number.
    outputs = [[torch.eye(MOST_WINDOWS)[[number] * len(item.spans)]] for number, item in enumerate(items)]
    (found,) = task.decode(task.model(encoder), [sentence], items, outputs)
    for word, label in enumerate(found["labels"]):
        around = {}
        for number, item in enumerate(items):
            for (shown, _), row in zip(item.spans, item.windows[0].rows, strict=True):
                if shown == word:
                    around[number] = min(row, len(item.windows[0].ids) - 1 - row)
        assert around[int(label)] == max(around.values())
    assert len(found["labels"]) == len(words)


@PROPERTY
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=40),
    st.integers(3, 30),
    st.sampled_from(["linear", "crf"]),
    st.integers(0, 2**16),
)
def test_tags_of_a_sentence_do_not_depend_on_where_it_is_cut(
    tiny_tokenizer: Tokenizer, encoder: Bert, words: list[str], max_length: int, head: Any, seed: int
) -> None:
    sentence = tagged_from_words(words)
    scores = 2 * torch.randn(len(words), len(LABELS), generator=torch.Generator().manual_seed(seed))
    found = []
    for task in (Tag(max_length, labels=LABELS, head=head), Tag(512, labels=LABELS, head=head)):
        items = task.encode([sentence], tiny_tokenizer)
        found += task.decode(task.model(encoder), [sentence], items, cut(items, scores))
    assert found[0] == found[1]


@PROPERTY
@given(st.integers(1, 120), st.integers(1, 6), st.integers(0, 12), st.integers(1, 8), st.integers(0, 2**16))
def test_the_answer_does_not_depend_on_where_the_context_is_cut(
    tiny_tokenizer: Tokenizer, tokens: int, longest: int, spare: int, stride: int, seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    asked = Question("", "cat?", " ".join("cat" for _ in range(tokens)))  # token i begins at character 4 i
    scores = torch.randn(tokens, 2, generator=rng)
    found = []
    # Steps no greater than room - longest + 1: every possible answer is whole in some window.
    narrow = Answer(max_length=5 + stride + longest - 1 + spare, stride=stride, longest=longest, no_answer=True)
    for task in (narrow, Answer(max_length=512, longest=longest, no_answer=True)):
        items = task.encode([asked], tiny_tokenizer)
        outputs = [
            [torch.cat([torch.ones(1, 2), scores[[place // 4 for place, _ in item.spans[1:]]]])] for item in items
        ]
        found += task.decode(torch.nn.Identity(), [asked], items, outputs)
    assert found[0].pop("probability") == pytest.approx(found[1].pop("probability"))
    assert found[0] == found[1]


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 19_997))
def test_an_answer_anywhere_in_twenty_thousand_tokens_is_found(tiny_tokenizer: Tokenizer, token: int) -> None:
    words = ["the"] * 20_000
    words[token : token + 3] = ["unaffordable", "cat", "。"]
    asked = Question("", "cat?", " ".join(words))
    task = Answer()
    items = task.encode([asked], tiny_tokenizer)
    start = asked.context.index("unaffordable")
    end = start + len("unaffordable cat")
    outputs = []
    for item in items:  # a perfect head: it knows the first and the last token by their places
        hits = [[float(first == start), float(past == end)] for first, past in item.spans]
        outputs.append([torch.tensor(hits)])
    (found,) = task.decode(torch.nn.Identity(), [asked], items, outputs)
    assert (found["answer"], found["start"], found["end"]) == ("unaffordable cat", start, end)
