"""Tagging: first pieces, windows, every head, entities with their places, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from heedful.config import from_mapping, to_mapping
from heedful.data.labelled.conll import tagged_from_text, tagged_from_words
from heedful.data.labelled.dataset import TaggedWords
from heedful.errors import HeedfulError
from heedful.tasks.entities import entity_scores
from heedful.tasks.finetuning import predict
from heedful.tasks.tag import Tag
from heedful.tasks.task import Item
from heedful.text.tokenizer import Tokenizer

LABELS = ("O", "B-ANIMAL", "B-PLACE", "I-ANIMAL", "I-PLACE")
HEADS = ["linear", "bilstm", "crf", "bilstm-crf"]
SENTENCES = [
    tagged_from_words(words.split(), tags.split())
    for words, tags in [
        ("the cat sees the dog", "O B-ANIMAL O O B-ANIMAL"),
        ("the dog loves 中 国", "O B-ANIMAL O B-PLACE I-PLACE"),
        ("the unaffordable cat", "O B-ANIMAL I-ANIMAL"),
        ("我 爱 北 京 。", "O O B-PLACE I-PLACE O"),
        ("cat , dog !", "B-ANIMAL O B-ANIMAL O"),
        ("the the the", "O O O"),
        ("dog sees 美 国", "B-ANIMAL O B-PLACE I-PLACE"),
        ("un cat sees", "B-ANIMAL I-ANIMAL O"),
    ]
]


def said(task: Tag, model: torch.nn.Module, example: TaggedWords, labels: Sequence[str], items: list[Item]) -> Any:
    """The prediction where every window is sure of these labels."""
    sure = 10 * torch.eye(len(task.labels))[[task.labels.index(label) for label in labels]]
    outputs = [[sure[[word for word, _ in item.spans]]] for item in items]
    return task.decode(model, [example], items, outputs)[0]


def test_the_label_is_on_the_first_piece_of_each_word(tiny_tokenizer: Tokenizer) -> None:
    (item,) = Tag(labels=LABELS).encode([SENTENCES[2]], tiny_tokenizer)
    (window,) = item.windows
    pieces = [tiny_tokenizer.vocabulary[i] for i in window.ids]
    assert pieces == ["[CLS]", "the", "un", "##afford", "##able", "cat", "[SEP]"]
    assert window.rows == [1, 2, 5] and window.segments == [0] * 7
    assert item.spans == ((0, 1), (1, 2), (2, 3)) and item.target == (0, 1, 3) and item.weight == 3


def test_no_word_is_lost(tiny_tokenizer: Tokenizer) -> None:
    words = ["the", "\u200b", "", "cat", "x" * 101, "\ufffd", "[SEP]", "dog's"]
    (item,) = Tag(labels=LABELS).encode([tagged_from_words(words)], tiny_tokenizer)
    (window,) = item.windows
    firsts = [tiny_tokenizer.vocabulary[window.ids[row]] for row in window.rows]
    assert firsts == ["the", "[UNK]", "[UNK]", "cat", "[UNK]", "[UNK]", "[SEP]", "dog"]
    assert item.target == ()


def test_a_sentence_without_words_has_no_labels(tiny_tokenizer: Tokenizer, small_model: Callable[..., Any]) -> None:
    task = Tag(labels=LABELS)
    examples = [tagged_from_text(" "), tagged_from_text("the cat"), tagged_from_text("")]
    found = predict(task, small_model(task), examples, tiny_tokenizer)
    assert [len(one["labels"]) for one in found] == [0, 2, 0]
    assert predict(task, small_model(task), examples[:1], tiny_tokenizer) == [
        {"words": [], "spans": [], "labels": [], "probability": 1.0, "probabilities": [], "entities": [], "empty": True}
    ]


def test_windows_begin_with_words_and_show_every_one(tiny_tokenizer: Tokenizer) -> None:
    words = tagged_from_words(["unaffordable", "cat"] * 10)  # 3 + 1 pieces each time
    items = Tag(max_length=9, labels=LABELS).encode([words], tiny_tokenizer)
    assert len(items) > 2 and {word for item in items for word, _ in item.spans} == set(range(20))
    for item in items:
        (window,) = item.windows
        assert window.rows[0] == 1 and len(window.ids) <= 9
        firsts = [tiny_tokenizer.vocabulary[window.ids[row]] for row in window.rows]
        assert firsts == ["un" if word % 2 == 0 else "cat" for word, _ in item.spans]


def test_what_fits_is_a_single_window_whatever_the_room(tiny_tokenizer: Tokenizer) -> None:
    longest = max(len(item.windows[0].ids) for item in Tag(labels=LABELS).encode(SENTENCES, tiny_tokenizer))
    exactly = Tag(max_length=longest, stride=1, labels=LABELS).encode(SENTENCES, tiny_tokenizer)
    assert exactly == Tag(max_length=512, labels=LABELS).encode(SENTENCES, tiny_tokenizer)
    assert len(exactly) == len(SENTENCES)


def test_a_path_of_a_crf_may_begin_where_a_window_cuts_an_entity(
    tiny_tokenizer: Tokenizer, trained: Callable[..., Any]
) -> None:
    long = tagged_from_words(["cat"] * 12, ["B-ANIMAL", *["I-ANIMAL"] * 11])
    task = Tag(max_length=6, labels=LABELS, head="crf")
    items = task.encode([long], tiny_tokenizer)
    assert all(item.target == (1, 3, 3, 3) for item in items) and {item.weight for item in items} == {1}
    assert trained(task, [long], steps=1).before > 0


@pytest.mark.parametrize("head", HEADS)
def test_every_head_learns(head: str, trained: Callable[..., Any], tiny_tokenizer: Tokenizer) -> None:
    task = Tag.fit(SENTENCES, head=head, lstm_width=16)
    assert task.labels == LABELS
    result = trained(task, SENTENCES)
    assert result.after < 0.5 * result.before
    found = predict(task, result.model, SENTENCES, tiny_tokenizer)
    assert task.score(SENTENCES, found)["accuracy"] > 0.8
    for one in found:
        for entity in one["entities"]:
            assert 0 < entity["probability"] <= 1


@pytest.mark.parametrize("head", ["linear", "crf"])
def test_entities_have_their_place_in_the_text(
    head: str, tiny_tokenizer: Tokenizer, small_model: Callable[..., Any]
) -> None:
    task = Tag(labels=LABELS, head=head)
    example = Tag.example("  The   unaffordable\tcat, sees 我爱北京。")
    assert example.words == ("The", "unaffordable", "cat", ",", "sees", "我", "爱", "北", "京", "。")
    labels = ["O", "B-ANIMAL", "I-ANIMAL", "O", "O", "O", "O", "B-PLACE", "I-PLACE", "O"]
    found = said(task, small_model(task), example, labels, task.encode([example], tiny_tokenizer))
    assert found["words"] == list(example.words) and found["labels"] == labels
    places = [(e["type"], e["text"], e["start"], e["end"]) for e in found["entities"]]
    assert places == [("ANIMAL", "unaffordable\tcat", 8, 24), ("PLACE", "北京", 33, 35)]
    assert all(example.text[e["start"] : e["end"]] == e["text"] for e in found["entities"])
    assert all(0.99 < e["probability"] <= 1 for e in found["entities"])
    json.dumps(found)


def test_the_probability_of_an_entity_is_the_mean_of_its_words(
    tiny_tokenizer: Tokenizer, small_model: Callable[..., Any]
) -> None:
    task, example = Tag(labels=LABELS), tagged_from_words(["the", "cat", "dog"])
    shares = torch.tensor([[0.9, 0.1, 0, 0, 0], [0.1, 0.6, 0.1, 0.1, 0.1], [0.1, 0.05, 0.05, 0.8, 0]])
    items = task.encode([example], tiny_tokenizer)
    (found,) = task.decode(small_model(task), [example], items, [[shares.log()]])
    (entity,) = found["entities"]
    assert entity["text"] == "cat dog" and entity["probability"] == pytest.approx(0.7)
    assert found["spans"] == [[0, 3], [4, 7], [8, 11]]
    assert found["probabilities"] == pytest.approx([0.9, 0.6, 0.8])
    assert found["probability"] == pytest.approx(2.3 / 3)


def test_a_stray_label_is_read_as_a_beginning(tiny_tokenizer: Tokenizer, small_model: Callable[..., Any]) -> None:
    task, example = Tag(labels=LABELS), tagged_from_words(["the", "cat", "dog"])
    labels = ["O", "I-ANIMAL", "I-PLACE"]
    found = said(task, small_model(task), example, labels, task.encode([example], tiny_tokenizer))
    assert found["labels"] == ["O", "B-ANIMAL", "B-PLACE"] and len(found["entities"]) == 2


def test_scores_are_of_entities_and_of_words() -> None:
    task = Tag(labels=LABELS)
    guess = [list(example.tags or ()) for example in SENTENCES]
    assert task.score(SENTENCES, [{"labels": labels} for labels in guess]) == {
        "f1": 1, "precision": 1, "recall": 1, "accuracy": 1,
    }  # fmt: skip
    guess[0][1] = "O"  # one of 11 entities is missed
    guess[5][0] = "B-PLACE"  # and one too many is found
    found = task.score(SENTENCES, [{"labels": labels} for labels in guess])
    assert found["f1"] == found["precision"] == found["recall"] == pytest.approx(10 / 11)
    assert found["accuracy"] == pytest.approx(1 - 2 / sum(map(len, guess)))
    confused, detail = task.details(SENTENCES, [{"labels": labels} for labels in guess])
    assert confused.columns == ("", "O", "ANIMAL", "PLACE") and confused.rows[0] == ("O", 15, 0, 1)
    assert [(row[0], row[-1]) for row in detail.rows] == [("ANIMAL", 8), ("PLACE", 3)]


@pytest.mark.parametrize("labels", [LABELS, (*LABELS, "NOUN")])
def test_any_choice_of_sentences_is_scored_as_if_it_were_all(labels: tuple[str, ...]) -> None:
    """Of entities, and of plain labels: against whole entities counted again, and against the words."""
    task, rng = Tag(labels=labels), np.random.default_rng(0)
    predictions = [{"labels": rng.choice(LABELS, len(example.words)).tolist()} for example in SENTENCES]
    rescored = task.rescorer(SENTENCES, predictions)
    for _ in range(20):
        chosen = rng.integers(len(SENTENCES), size=len(SENTENCES))
        truth = [SENTENCES[i].tags or () for i in chosen]
        guess = [predictions[i]["labels"] for i in chosen]
        right = float(np.mean(np.concatenate(truth) == np.concatenate(guess)))
        found = rescored(chosen)
        assert found["accuracy"] == pytest.approx(right)
        expected = entity_scores(truth, guess)
        whole = (expected.f1, expected.precision, expected.recall) if labels == LABELS else (right,) * 3
        assert (found["f1"], found["precision"], found["recall"]) == pytest.approx(whole)
        assert found == task.score([SENTENCES[i] for i in chosen], [predictions[i] for i in chosen])


def test_plain_labels_are_scored_word_by_word(tiny_tokenizer: Tokenizer, trained: Callable[..., Any]) -> None:
    examples = [tagged_from_words(["the", "cat", "sees"], ["D", "N", "V"]), tagged_from_words(["dog"], ["N"])]
    task = Tag.fit(examples, head="crf")
    assert task.labels == ("D", "N", "V") and not task.finds_entities
    found = predict(task, trained(task, examples).model, examples, tiny_tokenizer)
    assert [one["labels"] for one in found] == [["D", "N", "V"], ["N"]] and found[0]["entities"] == []
    assert found[0]["spans"] == [[0, 3], [4, 7], [8, 12]] and found[1]["probabilities"] == [found[1]["probability"]]
    assert found[0]["probability"] == pytest.approx(sum(found[0]["probabilities"]) / 3)
    worse = [{"labels": ["D", "N", "N"]}, {"labels": ["N"]}]
    assert set(task.score(examples, worse).values()) == {0.75}
    assert [row[0] for row in task.details(examples, worse)[0].rows] == ["D", "N", "V"]


def test_what_a_caller_may_give() -> None:
    assert Tag.example({"text": "the cat"}) == Tag.example("the cat") == tagged_from_text("the cat")
    assert Tag.example(["the", "cat"]) == Tag.example({"words": ("the", "cat")}) == tagged_from_words(["the", "cat"])
    assert Tag.example(SENTENCES[0]) is SENTENCES[0]
    for wrong in (3, None, {"sentence": "x"}, [1, 2], b"cat"):
        with pytest.raises(HeedfulError, match="not understood"):
            Tag.example(wrong)


def test_a_tag_that_training_never_had_is_told_and_counts_as_an_error() -> None:
    task = Tag(labels=LABELS)
    strange = TaggedWords(("the", "oak"), "the oak", ((0, 3), (4, 7)), ("O", "B-TREE"), "dev.conll:7")
    foreign = TaggedWords(("oak",), "oak", ((0, 3),), ("TREE",), "dev.conll:9")
    dev = [*SENTENCES, strange, foreign]
    task.check(dev)
    (remark,) = task.unseen(dev)
    assert (remark.count, remark.places) == (2, ("dev.conll:7", "dev.conll:9")) and "'B-TREE', 'TREE'" in remark.what
    right = [{"labels": list(example.tags or ())} for example in SENTENCES]
    scores = task.score(dev, [*right, {"labels": ["O", "B-PLACE"]}, {"labels": ["O"]}])
    assert scores["recall"] == pytest.approx(11 / 13) and scores["precision"] == pytest.approx(11 / 12)
    confused, by_type = task.details(dev, [*right, {"labels": ["O", "B-PLACE"]}, {"labels": ["O"]}])
    assert confused.rows[-1] == ("TREE (not in training)", 1, 0, 1)
    assert by_type.rows[-1] == ("TREE", 0.0, 0.0, 0.0, 2)


def test_a_plain_tag_that_training_never_had_is_shown_by_itself() -> None:
    task = Tag(labels=("NOUN", "VERB"))
    dev = [tagged_from_words(["cat", "sees", "un"], ["NOUN", "VERB", "PART"])]
    confused, by_label = task.details(dev, [{"labels": ["NOUN", "VERB", "VERB"]}])
    assert confused.rows[-1] == ("PART (not in training)", 0, 1) and by_label.rows[-1][0] == "PART"
    assert task.score(dev, [{"labels": ["NOUN", "VERB", "VERB"]}])["accuracy"] == pytest.approx(2 / 3)


def test_sentences_without_tags_are_refused() -> None:
    with pytest.raises(HeedfulError, match="only the tag 'O'"):
        Tag.fit([tagged_from_words(["an"], ["O"])])
    with pytest.raises(HeedfulError, match="no tags"):
        Tag(labels=LABELS).check([tagged_from_words(["oak"])])


def test_the_task_is_kept_as_json() -> None:
    task = Tag(max_length=64, stride=16, labels=LABELS, head="bilstm-crf", features=(-1, -2), lstm_layers=2)
    assert from_mapping(Tag, json.loads(json.dumps(to_mapping(task))), "task.json") == task
    with pytest.raises(HeedfulError, match="one of 'linear'"):
        from_mapping(Tag, {"head": "square"}, "task.json")


def test_hugging_face_has_a_class_for_the_linear_head_only() -> None:
    assert Tag(labels=LABELS).architecture == "TokenClassification"
    assert Tag(labels=LABELS, head="bilstm").architecture is None
    assert Tag(labels=LABELS, features=(-1, -2)).architecture is None
