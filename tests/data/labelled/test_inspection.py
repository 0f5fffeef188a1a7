"""What is found out about labelled data, against counting by hand."""

import random

import numpy as np
import pytest

from heedful.data.labelled.dataset import Answer, Choice, Columns, Question, TaggedWords, TextRow
from heedful.data.labelled.inspection import (
    count_tokens,
    findings,
    leaks,
    looks_like_regression,
    read_samples,
    summary,
)
from heedful.data.labelled.samples import sample_of


def rows(*texts, labels=None):
    labels = labels or ["x"] * len(texts)
    return [
        sample_of(TextRow(text, None, label, f"f:{i}"))
        for i, (text, label) in enumerate(zip(texts, labels, strict=True), 1)
    ]


def remarks_of(samples, task="classify", tokens=None, limit=None):
    found = findings("f", task, samples, (), tokens, limit)
    return {remark.what: (remark.count, remark.places) for remark in found.remarks}


def test_lengths_against_numpy():
    rng = random.Random(0)
    values = [rng.randrange(300) for _ in range(997)] + [0, 1]
    found = summary("words", values)
    expected = np.quantile(values, [0, 0.5, 0.95, 1], method="inverted_cdf").tolist()
    assert [found.least, found.median, found.p95, found.most] == expected
    assert found.histogram[0] == (0, 0, values.count(0)) and found.histogram[-1][:2] == (256, 511)
    for first, last, count in found.histogram:
        assert count == sum(first <= value <= last for value in values)
    assert sum(count for _, _, count in found.histogram) == len(values)


def test_lengths_of_a_single_example():
    found = summary("words", [5])
    assert (found.least, found.median, found.p95, found.most, found.histogram) == (5, 5, 5, 5, ((4, 7, 1),))


def test_repeats_and_contradictions():
    samples = rows("a", "b", "a", "a", "b", labels=["x", "y", "x", "y", "y"])
    assert remarks_of(samples) == {
        "repeated examples": (2, ("f:3 = f:1", "f:5 = f:2")),
        "repeated examples with another label": (1, ("f:4 = f:1",)),
    }


def test_pairs_repeat_only_as_pairs():
    first, turned = TextRow("a", "b", "x", "f:1"), TextRow("b", "a", "x", "f:2")
    assert remarks_of([sample_of(first), sample_of(turned)]) == {}


def test_empty_texts():
    samples = [*rows("a", " "), sample_of(TextRow("a", "", "x", "f:9"))]
    assert remarks_of(samples) == {"examples with an empty text": (2, ("f:2", "f:9"))}


def test_leaks_and_new_labels():
    train, dev = rows("a", "b", "a"), rows("c", "a", "b", labels=["x", "x", "z"])
    assert {remark.what: (remark.count, remark.places) for remark in leaks(train, dev)} == {
        "dev examples that stand in the training data too": (2, ("f:2 = f:1", "f:3 = f:2")),
        "dev examples with a label that the training data never has": (1, ("f:3",)),
    }
    assert leaks(train, rows("c")) == ()


def test_leaks_of_a_text_that_is_asked_about():
    train = [
        sample_of(Question("1", "who?", "a mill", (), "f:1")),
        sample_of(Question("2", "who?", "a tree", (), "f:2")),
    ]
    dev = [
        sample_of(Question("3", "when?", "a tree", (), "g:1")),
        sample_of(Question("4", "who?", "a mill", (), "g:2")),
    ]
    assert {remark.what: remark.places for remark in leaks(train, dev)} == {
        "dev examples that stand in the training data too": ("g:2 = f:1",),
        "dev examples about a text that the training data is about too": ("g:1 = f:2",),
    }


def test_tokens_of_texts_and_pairs(tiny_tokenizer):
    texts = ["the cat", "the unaffordable dog 🙂", "我爱北京"] * 400  # more than a chunk
    tokens = count_tokens(rows(*texts), tiny_tokenizer)
    assert tokens.lengths == [4, 8, 6] * 400  # un ##afford ##able; [CLS] and [SEP] count
    assert tokens.pieces == 400 * (2 + 6 + 4) and tokens.unknown == 400
    pair = sample_of(TextRow("the cat", "the dog sees", "x"))
    assert count_tokens([pair], tiny_tokenizer).lengths == [2 + 3 + 3]


def test_tokens_of_the_other_tasks(tiny_tokenizer):
    sentence = sample_of(TaggedWords(("the", "unaffordable", "1", "2"), "the unaffordable 12", ((0, 3),), None))
    assert count_tokens([sentence], tiny_tokenizer).lengths == [2 + 1 + 3 + 1 + 1]
    question = sample_of(Question("q", "the cat", "the dog sees the cat", (Answer("dog", 4),)))
    assert count_tokens([question], tiny_tokenizer).lengths == [3 + 2 + 5]
    choice = Choice("the cat", "the dog", ("sees", "sees the cat"), 0)
    longest = tiny_tokenizer.encode("the cat", "the dog sees the cat").ids
    assert count_tokens([sample_of(choice)], tiny_tokenizer).lengths == [len(longest)]


def test_what_is_too_long_for_the_model(tiny_tokenizer):
    samples = rows("the cat", "the cat sees the dog", "the cat sees the")
    tokens = count_tokens(samples, tiny_tokenizer)
    found = findings("f", "classify", samples, (), tokens, 6)
    assert found.limit == 6 and found.unknown_share == 0 and [one.unit for one in found.lengths] == ["tokens"]
    (remark,) = found.remarks
    assert "longer than 6 tokens" in remark.what and remark.places == ("f:2",)


def test_lengths_without_a_model():
    found = findings("f", "classify", rows("我爱 the cat!", "x"), (), None, None)
    characters, words = found.lengths
    assert (characters.unit, characters.most, words.unit, words.most) == ("characters", 11, "words", 5)
    assert found.limit is None and found.unknown_share is None


def test_labels_by_how_often_they_occur():
    assert list(findings("f", "classify", rows(*"abc", labels=["x", "y", "y"]), (), None, None).labels.items()) == [
        ("y", 2),
        ("x", 1),
    ]


@pytest.mark.parametrize(
    ("tags", "counted"),
    [
        (("B-PER", "I-PER", "O", "B-LOC", "B-PER"), {"PER": 2, "LOC": 1}),
        (("NN", "NN", "VB"), {"NN": 2, "VB": 1}),
        (("O", "O"), {}),
    ],
)
def test_tags_are_counted_as_entities(tags, counted):
    words = tuple(str(i) for i in range(len(tags)))
    sample = sample_of(TaggedWords(words, " ".join(words), (), tags))
    assert findings("f", "tag", [sample], (), None, None).labels == counted


def test_questions_are_counted_by_whether_they_have_an_answer():
    samples = [sample_of(Question(str(i), "q", f"c{i}", (Answer("c", 0),) * (i > 0))) for i in range(3)]
    assert findings("f", "answer", samples, (), None, None).labels == {"answer": 2, "no answer": 1}


def test_regression(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,score\na,1\nb,2.5\nc,4\n")
    task, samples, _ = read_samples(path, None, Columns(), labelled=True)
    found = findings(path, task, samples, (), None, None)
    assert (found.task, found.labels, leaks(samples[:1], samples[1:])) == ("regress", {}, ())
    assert (found.scale.least, found.scale.mean, found.scale.most) == (1, 2.5, 4)
    path.write_text("text,score\na,1\nb,inf\nc,good\n")
    task, samples, _ = read_samples(path, "regress", Columns(), labelled=True)
    assert remarks_of(samples, task) == {"labels that are not numbers": (2, (f"{path}:3", f"{path}:4"))}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["0", "1"], False),
        (["0", "1.5"], True),
        (["1", "x"], False),
        ([str(i) for i in range(30)], True),
        (["1.0", "2.0"], False),
        (["1", "inf"], False),
    ],
)
def test_what_looks_like_a_regression(labels, expected):
    assert looks_like_regression(rows(*map(str, range(len(labels))), labels=labels)) is expected


def test_without_labels_nothing_is_said_about_them(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"question": "q", "context": "c"}\n{"question": "q", "context": "c"}\n')
    task, samples, _ = read_samples(path, None, Columns(), labelled=False)
    assert task == "answer"
    assert findings(path, "answer", samples, (), None, None).labels == {}
    assert list(remarks_of(samples, "answer")) == ["repeated examples"]
