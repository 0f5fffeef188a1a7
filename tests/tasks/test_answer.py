"""Answering: windows and targets, places in odd texts, "no answer" and its threshold, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from heedful.config import from_mapping, to_mapping
from heedful.data.labelled import dataset
from heedful.data.labelled.dataset import Question
from heedful.errors import HeedfulError
from heedful.tasks.answer import Answer
from heedful.tasks.answer_metrics import f1
from heedful.tasks.finetuning import predict
from heedful.tasks.items import outputs_of
from heedful.tasks.task import Item
from heedful.text.tokenizer import Tokenizer

ENGLISH = "  The   unaffordable\tcafé, Zoë's cat sees  the dog ."
CHINESE = "　我爱 北京，中国\n的苹果 。"
MODEL = torch.nn.Identity()  # answers are found without it


def question(asked: str, context: str, *answers: str) -> Question:
    return Question(asked, asked, context, tuple(dataset.Answer(text, context.index(text)) for text in answers))


QUESTIONS = [
    question("cat?", "the cat sees the dog.", "the dog"),
    question("dog?", "the dog loves a cat.", "a cat"),
    question("中国", "我爱北京，中国。", "北京"),
    question("美国", "美国的苹果。", "苹果"),
    question("un", "unaffordable cat, dog", "unaffordable cat"),
    question("the", "a b c d e", "b c"),
    question("x", "the cat loves 42 dogs", "42"),
    question("y", "dog cat dog", "cat"),
]


def pointing(items: Sequence[Item], null: float = 0.0) -> list[list[torch.Tensor]]:
    """Outputs that are sure of the targets."""
    outputs = []
    for item in items:
        scores = torch.zeros(len(item.spans), 2)
        scores[0] = null / 2
        first, last = map(int, item.target)
        if last:
            scores[first, 0] = scores[last, 1] = 10
        outputs.append([scores])
    return outputs


def test_the_context_is_looked_at_behind_the_question(tiny_tokenizer: Tokenizer) -> None:
    (item,) = Answer().encode([QUESTIONS[0]], tiny_tokenizer)
    (window,) = item.windows
    pieces = [tiny_tokenizer.vocabulary[i] for i in window.ids]
    assert pieces == ["[CLS]", "cat", "?", "[SEP]", "the", "cat", "sees", "the", "dog", ".", "[SEP]"]
    assert window.segments == [0] * 4 + [1] * 7
    assert window.rows == [0, 4, 5, 6, 7, 8, 9]
    assert item.spans == ((-1, -1), (0, 3), (4, 7), (8, 12), (13, 16), (17, 20), (20, 21))
    assert item.target == (4, 5) and item.weight == 1


@pytest.mark.parametrize("answer", ["The", "unaffordable\tcafé", "café, Zoë's", "Zoë", "cat sees  the dog .", "s"])
def test_places_in_odd_english(answer: str, tiny_tokenizer: Tokenizer) -> None:
    asked = question("who?", ENGLISH, answer)
    if answer == "s":  # the last of "Zoë's"
        asked = Question("", "who?", ENGLISH, (dataset.Answer("s", ENGLISH.index("'s") + 1),))
    items = Answer().encode([asked], tiny_tokenizer)
    (found,) = Answer().decode(MODEL, [asked], items, pointing(items))
    assert found["answer"] == answer == ENGLISH[found["start"] : found["end"]]
    assert found["start"] == asked.answers[0].start
    assert found["probability"] > 0.9 and found["no_answer_score"] == -20


@pytest.mark.parametrize("answer", ["我", "北京", "北京，中国", "中国\n的苹果", "。"])
def test_places_in_odd_chinese(answer: str, tiny_tokenizer: Tokenizer) -> None:
    asked = question("什么？", CHINESE, answer)
    items = Answer().encode([asked], tiny_tokenizer)
    (found,) = Answer().decode(MODEL, [asked], items, pointing(items))
    assert found["answer"] == answer == CHINESE[found["start"] : found["end"]]


def test_an_answer_inside_a_token_is_that_token(tiny_tokenizer: Tokenizer) -> None:
    asked = question("who?", "the cat sees", "at se")
    (item,) = Answer().encode([asked], tiny_tokenizer)
    assert item.target == (2, 3)


def test_windows_without_the_whole_answer_point_at_cls(tiny_tokenizer: Tokenizer) -> None:
    asked = question("cat?", "a b c d e f g h i j k l", "f g")
    task = Answer(max_length=10, stride=2)  # 5 tokens of the context at a time
    items = task.encode([asked], tiny_tokenizer)
    assert [item.spans[1:][0][0] // 2 for item in items] == [0, 2, 4, 6, 7]
    assert [item.target for item in items] == [(0, 0), (4, 5), (2, 3), (0, 0), (0, 0)]
    for item in items:
        assert len(item.windows[0].ids) == 10
    (found,) = task.decode(MODEL, [asked], items, pointing(items))
    assert (found["answer"], found["start"], found["end"]) == ("f g", 10, 13)


def test_a_long_question_leaves_room_for_the_context(tiny_tokenizer: Tokenizer) -> None:
    asked = question("a " * 100, "b c d e f g h i j k", "k")
    items = Answer(max_length=16, stride=128).encode([asked], tiny_tokenizer)  # 8 + 3 + 5
    assert all(len(item.windows[0].ids) == 16 for item in items) and len(items) == 4
    with pytest.raises(HeedfulError, match="max_length"):
        Answer(max_length=5).encode([asked], tiny_tokenizer)


def test_what_fits_is_a_single_window_whatever_the_room(
    tiny_tokenizer: Tokenizer, small_model: Callable[..., Any]
) -> None:
    wide = Answer()
    longest = max(item.tokens for item in wide.encode(QUESTIONS, tiny_tokenizer))
    narrow = Answer(max_length=longest, stride=1)
    assert narrow.encode(QUESTIONS, tiny_tokenizer) == wide.encode(QUESTIONS, tiny_tokenizer)
    model = small_model(wide)
    found = [predict(task, model, QUESTIONS, tiny_tokenizer) for task in (wide, narrow)]
    assert found[0] == found[1] and len(found[0]) == len(QUESTIONS)


def test_a_long_question_that_fits_is_not_cut(tiny_tokenizer: Tokenizer) -> None:
    asked = question("a b c d e f g h", "i j", "j")  # 8 + 2 + 3 tokens
    exactly = Answer(max_length=13, stride=1).encode([asked], tiny_tokenizer)
    assert exactly == Answer().encode([asked], tiny_tokenizer) and len(exactly) == 1 and not exactly[0].cut
    (item,) = Answer(max_length=12, stride=1).encode([asked], tiny_tokenizer)  # the context is shorter than the half
    assert len(item.spans) == 3 and item.tokens == 12 and item.cut


def test_the_loss_is_a_softmax_over_the_rows_of_each_window(tiny_tokenizer: Tokenizer) -> None:
    items = Answer().encode(QUESTIONS, tiny_tokenizer)
    counts = [len(item.spans) for item in items]
    outputs = torch.randn(sum(counts), 2, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss = Answer().loss(MODEL, outputs, counts, torch.tensor([row for item in items for row in item.target]))
    expected = torch.zeros(())
    for scores, item in zip(outputs.split(counts), items, strict=True):
        for column, row in enumerate(item.target):
            expected = expected + F.cross_entropy(scores[:, column], torch.tensor(int(row))) / 2
    torch.testing.assert_close(loss, expected)
    (found,), (wanted,) = (torch.autograd.grad(value, outputs, retain_graph=True) for value in (loss, expected))
    torch.testing.assert_close(found, wanted)


def test_it_learns(trained: Callable[..., Any], tiny_tokenizer: Tokenizer) -> None:
    task = Answer.fit(QUESTIONS)
    result = trained(task, QUESTIONS)
    assert result.after < 0.5 * result.before
    found = predict(task, result.model, QUESTIONS, tiny_tokenizer)
    assert task.score(QUESTIONS, found)["f1"] > 0.8
    json.dumps(found)


def test_the_best_answer_against_all_pairs_of_all_windows(
    tiny_tokenizer: Tokenizer, small_model: Callable[..., Any]
) -> None:
    context = " ".join(["the", "cat", "sees", "a", "dog", ".", "我爱北京"] * 6)
    asked = Question("", "who?", context)
    task = Answer(max_length=20, stride=5, longest=4, no_answer=True, threshold=1e9)
    items = task.encode([asked], tiny_tokenizer)
    outputs = outputs_of(small_model(task), items)
    every: dict[tuple[int, int], float] = {}
    for item, (scores,) in zip(items, outputs, strict=True):
        for first in range(1, len(scores)):
            for last in range(first, min(first + 4, len(scores))):
                place = item.spans[first][0], item.spans[last][1]
                every[place] = max(every.get(place, -math.inf), float(scores[first, 0] + scores[last, 1]))
    null = min(float(scores[0].sum()) for (scores,) in outputs)
    place, best = max(every.items(), key=lambda pair: pair[1])
    (found,) = task.decode(MODEL, [asked], items, outputs)
    assert (found["start"], found["end"], found["answer"]) == (*place, context[slice(*place)])
    assert found["no_answer_score"] == pytest.approx(null - best, abs=1e-5)
    shares = [math.exp(score - best) for score in [*sorted(every.values(), reverse=True)[:20], null]]
    assert found["probability"] == pytest.approx(1 / sum(shares), rel=1e-4)
    silent = Answer(max_length=20, stride=5, longest=4, no_answer=True, threshold=-1e9)
    (nothing,) = silent.decode(MODEL, [asked], items, outputs)
    assert (nothing["answer"], nothing["start"], nothing["end"]) == ("", None, None)
    assert nothing["best_answer"] == found["answer"] and nothing["no_answer_score"] == found["no_answer_score"]
    assert nothing["probability"] == pytest.approx(shares[-1] / sum(shares), rel=1e-4)


def test_a_context_of_nothing_has_no_answer(tiny_tokenizer: Tokenizer, small_model: Callable[..., Any]) -> None:
    task = Answer()
    (found,) = predict(task, small_model(task), [Answer.example(("who?", " \u200b"))], tiny_tokenizer)
    assert found == {"answer": "", "start": None, "end": None, "probability": 1.0, "no_answer_score": 0.0}


def test_the_threshold_is_the_best_for_the_dev_data() -> None:
    rng = torch.Generator().manual_seed(3)
    truths = ["cat", "", "dog", "", "", "the dog", "cat", "", "cat", "dog"]
    guesses = ["cat", "dog", "cat", "cat", "dog", "dog", "cat", "cat", "a cat", "fish"]
    silence = torch.randn(len(truths), generator=rng).tolist()
    questions = [question(str(i), "the cat the dog", *([text] if text else [])) for i, text in enumerate(truths)]
    predictions = [{"no_answer_score": s, "best_answer": g} for s, g in zip(silence, guesses, strict=True)]

    def mean_f1(threshold: float) -> float:
        said = ["" if s > threshold else guess for s, guess in zip(silence, guesses, strict=True)]
        return sum(f1([truth] if truth else [], one) for truth, one in zip(truths, said, strict=True)) / len(truths)

    task = Answer.fit(questions).tuned(questions, predictions)
    assert task.no_answer and isinstance(task.threshold, float)
    assert mean_f1(task.threshold) == pytest.approx(max(map(mean_f1, [-math.inf, *silence])))
    always = Answer.fit(QUESTIONS)
    assert always.tuned(QUESTIONS, []) is always


def test_scores_tell_questions_with_and_without_answer_apart() -> None:
    questions = [QUESTIONS[0], question("z", "the cat")]
    assert Answer().score(questions, [{"answer": "dog"}, {"answer": ""}]) == {
        "exact": 1, "f1": 1, "no_answer_accuracy": 1, "has_answer_exact": 1, "has_answer_f1": 1,
    }  # fmt: skip
    chinese = [question("什么", "我爱北京，中国。", "北京，中国")]
    assert Answer(language="zh").score(chinese, [{"answer": "北京中"}])["f1"] == pytest.approx(2 * 3 / 7)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_any_choice_of_questions_is_scored_as_if_it_were_all(language: Literal["en", "zh"]) -> None:
    questions = [*QUESTIONS, question("z", "the cat"), question("q", "the dog")]
    guesses = ["dog", "a the cat", "北", "苹果", "", "b c d", "42", "dog", "", "dog"]
    predictions = [{"answer": guess} for guess in guesses]
    task, rng = Answer(language=language, no_answer=True), np.random.default_rng(0)
    rescored = task.rescorer(questions, predictions)
    choices = [rng.integers(len(questions), size=len(questions)) for _ in range(20)]
    for chosen in [*choices, np.arange(8), np.array([8, 9, 8])]:  # all with an answer, and all without
        picked = [questions[i] for i in chosen], [predictions[i] for i in chosen]
        assert rescored(chosen) == pytest.approx(task.score(*picked))


def test_the_language_and_silence_are_found_in_the_training_data() -> None:
    assert Answer.fit(QUESTIONS[:2]) == Answer()
    assert Answer.fit(QUESTIONS[2:4]).language == "zh"
    with_none = Answer.fit([QUESTIONS[0], question("z", "the cat")], max_length=64)
    assert with_none == Answer(max_length=64, no_answer=True)
    with pytest.raises(HeedfulError, match=r"no question has an answer"):
        Answer.fit([question("z", "the cat")])


def test_a_question_without_answer_counts_as_an_error_where_training_had_none() -> None:
    strange = Question("7", "who?", "the cat", (), "dev.json: data[0]")
    (remark,) = Answer().unseen([*QUESTIONS, strange])
    assert (remark.count, remark.places) == (1, ("dev.json: data[0]",))
    assert Answer().score([strange], [{"answer": "the cat"}])["exact"] == 0
    assert Answer(no_answer=True).unseen([*QUESTIONS, strange]) == ()


def test_what_a_caller_may_give() -> None:
    assert Answer.example({"question": "who?", "context": "cat"}) == Question("", "who?", "cat")
    assert Answer.example(("who?", "cat")) == Answer.example(["who?", "cat"]) == Question("", "who?", "cat")
    assert Answer.example(QUESTIONS[0]) is QUESTIONS[0]
    for wrong in ("who?", "ab", {"question": "who?"}, ("a", "b", "c"), ("a", 3), 7):
        with pytest.raises(HeedfulError, match="not understood"):
            Answer.example(wrong)


def test_the_task_is_kept_as_json() -> None:
    task = Answer(max_length=256, language="zh", no_answer=True, threshold=-1.5, longest=50)
    assert from_mapping(Answer, json.loads(json.dumps(to_mapping(task))), "task.json") == task
