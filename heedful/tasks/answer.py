"""Answering: the stretch of a context that answers a question, by a softmax over the context's tokens for either end.

    [CLS] question [SEP] a window of the context [SEP]

The head gives each token of the window a score as the first and one as the last of the answer; the row that sums the
window up, for BERT that of [CLS], stands for "the answer is not in here". A context that is too long is read in
windows, and the best stretch of all windows is taken.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from heedful.data.labelled import dataset
from heedful.data.labelled.dataset import Columns, Dataset, Question, Remark
from heedful.data.labelled.squad import read_questions
from heedful.data.oddities import Oddities
from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder
from heedful.models.heads import SpanFinder
from heedful.tasks.answer_metrics import MEASURES, best_threshold, scores
from heedful.tasks.span_search import best_stretches
from heedful.tasks.task import Item, Prediction, Rescorer, Task, Window
from heedful.tasks.text_items import first_side
from heedful.tasks.windows import spread
from heedful.text.ideographs import IDEOGRAPHS
from heedful.text.rows import DataSource
from heedful.text.tokenizer import Tokenizer

Place = tuple[int, int]  # characters of a context, first and past the last
# What the row that sums a window up stands for, and its number among the rows that are looked at.
NOWHERE, NO_ANSWER = (-1, -1), 0
# So many stretches share the probability with "no answer".
CANDIDATES = 20
# So many questions tell which language they are in.
LANGUAGE_SAMPLE = 1000


class _Context(NamedTuple):
    ids: list[int]
    places: list[Place]  # of its tokens


@dataclass(frozen=True)
class Answer(Task[Question]):
    """Where in the context is the answer, if it is there at all?

    Exact match and F1 are SQuAD's; for Chinese they are CMRC's, character by character.
    """

    name: ClassVar[str] = "answer"
    best: ClassVar[str] = "f1"
    layouts: ClassVar[tuple[tuple[str, ...], ...]] = (("question", "context", "answers"),)
    scores: ClassVar[tuple[str, ...]] = ("exact", "f1", "no_answer_accuracy", "has_answer_exact", "has_answer_f1")
    architecture: ClassVar[str | None] = "QuestionAnswering"

    max_length: int = 384
    stride: int = 128
    longest: int = 30  # tokens of an answer
    language: Literal["en", "zh"] = "en"  # whose measures score it
    no_answer: bool = False  # whether "there is no answer" may be said
    threshold: float = 0.0  # it is said where its score is so much higher than the best answer's

    @classmethod
    def read(cls, path: DataSource, columns: Columns, labelled: bool = True) -> Dataset[Question]:
        """Questions of a SQuAD or JSON-lines file; it has no columns to choose."""
        return read_questions(path, labelled)

    @classmethod
    def example(cls, given: Any) -> Question:
        """A mapping with `question` and `context`, or the two as a pair."""
        if isinstance(given, Question):
            return given
        pair = (given.get("question"), given.get("context")) if isinstance(given, Mapping) else given
        if isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(side, str) for side in pair):
            return Question("", pair[0], pair[1])
        what = f"an input of type {type(given).__name__} is not understood"
        raise HeedfulError(what, remedy='give {"question": …, "context": …}, or the two texts in this order')

    @classmethod
    def fit(cls, examples: Sequence[Question], **fields: Any) -> Answer:
        """Whether some questions have no answer, and which language's measures to score by."""
        answered = [bool(question.answers) for question in examples]
        if not any(answered):
            raise HeedfulError(
                "no question has an answer",
                where=examples[0].where or None if examples else None,
                remedy="give questions with answers to learn from",
            )
        return cls(**{"language": _language(examples), "no_answer": not all(answered), **fields})

    def check(self, examples: Sequence[Question]) -> None:
        """Every question can be scored."""

    def unseen(self, examples: Sequence[Question]) -> tuple[Remark, ...]:
        """Questions without an answer where every one in training had one: whatever is answered is wrong."""
        found = Oddities()
        for question in examples:
            if not question.answers and not self.no_answer:
                found.note(
                    "questions without an answer, which training never showed: counted as errors", question.where
                )
        return found.remarks

    def encode(self, examples: Sequence[Question], tokenizer: Tokenizer) -> list[Item]:
        """One item for each window; of a question that does not fit, as much as fills half of a window."""
        texts = list(dict.fromkeys(question.context for question in examples))
        encodings = zip(texts, tokenizer.pieces(texts), strict=True)
        contexts = {text: _Context(encoding.ids, encoding.offsets) for text, encoding in encodings}
        asked = tokenizer.pieces([question.question for question in examples])
        return [
            item
            for number, (question, words) in enumerate(zip(examples, asked, strict=True))
            for item in self._items(number, question, words.ids, contexts[question.context], tokenizer)
        ]

    def _items(
        self, number: int, question: Question, asked: list[int], context: _Context, tokenizer: Tokenizer
    ) -> Iterator[Item]:
        frame = tokenizer.frame
        whole, asked = asked, first_side(asked, len(context.ids), self.max_length, frame)
        answer = _tokens_of(question.answers[0], context.places) if question.answers else None
        before, room = frame.second_starts(len(asked)), self.max_length - frame.pair.size - len(asked)
        # Where a long question leaves less room than the stride, windows overlap by half instead.
        for window in spread(len(context.ids), room, self.stride if self.stride <= room else 0):
            inside = slice(window.start, window.stop)
            ids, segments = frame.joined(asked, context.ids[inside])
            rows = [frame.summary_row(len(ids)), *range(before, before + len(window))]
            yield Item(
                number,
                (Window(ids, segments, rows),),
                target=_target(answer, window),
                spans=(NOWHERE, *context.places[inside]),
                cut=len(asked) < len(whole),
            )

    def model(self, encoder: Encoder) -> nn.Module:
        """A linear layer with two outputs over every token: as the first and as the last of the answer."""
        return SpanFinder(encoder)

    def loss(self, model: nn.Module, outputs: Tensor, counts: Sequence[int], targets: Tensor) -> Tensor:
        """The mean of the cross-entropies of first and last token, each over the rows of its window."""
        padded = pad_sequence(list(torch.split(outputs, list(counts))), batch_first=True, padding_value=-math.inf)
        return F.cross_entropy(padded, targets.long().view(-1, 2), reduction="sum") / 2

    def decode(
        self,
        model: nn.Module,
        examples: Sequence[Question],
        items: Sequence[Item],
        outputs: Sequence[Sequence[Tensor]],
    ) -> list[Prediction]:
        """The best answer of each question, or an empty one, with its place in the context.

        An answer's score is that of its first plus that of its last token, in the window where it is best. The score
        of "no answer" is that of its row twice, in the window where it is lowest; `no_answer_score` is how much it is
        above the best answer. Probabilities are a softmax over the scores of the 20 best answers and of "no answer".
        """
        parts = zip(items, (output for (output,) in outputs), strict=True)
        by_example = groupby(parts, key=lambda part: part[0].example)
        return [self._prediction(examples[number], list(windows)) for number, windows in by_example]

    def _prediction(self, question: Question, windows: Sequence[tuple[Item, Tensor]]) -> Prediction:
        null = min(float(output[NO_ANSWER].sum()) for _, output in windows)
        ranked = self._ranked(windows)
        shares = torch.tensor([score for _, score in ranked] + [null], dtype=torch.float64).softmax(0).tolist()
        place, score = ranked[0] if ranked else (None, null)
        best = question.context[slice(*place)] if place else ""
        silent = place is None or (self.no_answer and null - score > self.threshold)
        found: Prediction = {
            "answer": "" if silent else best,
            "start": None if silent or place is None else place[0],
            "end": None if silent or place is None else place[1],
            "probability": shares[-1] if silent else shares[0],
            "no_answer_score": null - score,
        }
        return {**found, "best_answer": best} if self.no_answer else found

    def _ranked(self, windows: Sequence[tuple[Item, Tensor]]) -> list[tuple[Place, float]]:
        """The best places and their scores, best first; one that several windows show has its best score."""
        found: dict[Place, float] = {}
        for item, output in windows:
            starts, ends = output[NO_ANSWER + 1 :].unbind(-1)
            places = item.spans[NO_ANSWER + 1 :]
            for score, first, last in best_stretches(starts, ends, self.longest, CANDIDATES):
                place = places[first][0], places[last][1]
                found[place] = max(score, found.get(place, -math.inf))
        return sorted(found.items(), key=lambda pair: -pair[1])[:CANDIDATES]

    def said(self, prediction: Prediction) -> str:
        """The answer."""
        return str(prediction["answer"]) or "(no answer)"

    def score(self, examples: Sequence[Question], predictions: Sequence[Prediction]) -> Mapping[str, float]:
        """Exact match and F1, and those of questions with and without an answer where there are both."""
        return scores(examples, [str(prediction["answer"]) for prediction in predictions], self.language)

    def rescorer(self, examples: Sequence[Question], predictions: Sequence[Prediction]) -> Rescorer:
        """As `score`, with each question measured once."""
        truths = [[answer.text for answer in question.answers] for question in examples]
        said = [(truth, str(prediction["answer"])) for truth, prediction in zip(truths, predictions, strict=True)]
        exact, f1 = (np.array([measure(*pair) for pair in said]) for measure in MEASURES[self.language])
        answered = np.array([bool(truth) for truth in truths])
        return lambda chosen: _means(exact[chosen], f1[chosen], answered[chosen])

    def blind_guess(self, examples: Sequence[Question]) -> tuple[str, Sequence[Prediction]] | None:
        """No answer, where questions may have none."""
        return ("nothing", [{"answer": ""}] * len(examples)) if self.no_answer else None

    def tuned(self, examples: Sequence[Question], predictions: Sequence[Prediction]) -> Answer:
        """The task with the threshold that gives these predictions the best F1."""
        if not self.no_answer:
            return self
        silence = [float(prediction["no_answer_score"]) for prediction in predictions]
        guesses = [str(prediction["best_answer"]) for prediction in predictions]
        return replace(self, threshold=best_threshold(silence, examples, guesses, self.language))


def _means(exact: NDArray[np.float64], f1: NDArray[np.float64], answered: NDArray[np.bool_]) -> dict[str, float]:
    """The scores of questions that are measured already."""
    found = {"exact": exact.mean(), "f1": f1.mean()}
    if not answered.all():
        found["no_answer_accuracy"] = exact[~answered].mean()
        if answered.any():
            found |= {"has_answer_exact": exact[answered].mean(), "has_answer_f1": f1[answered].mean()}
    return {name: float(value) for name, value in found.items()}


def _language(questions: Sequence[Question]) -> str:
    """Chinese if more than half of the letters are ideographs."""
    text = "".join(question.question + question.context for question in questions[:LANGUAGE_SAMPLE])
    ideographs = len(re.findall(f"[{IDEOGRAPHS}]", text))
    return "zh" if 2 * ideographs > sum(map(str.isalnum, text)) else "en"


def _tokens_of(answer: dataset.Answer, places: Sequence[Place]) -> Place | None:
    """The first and the last token that an answer touches; None if it touches none."""
    first = bisect_right(places, answer.start, key=lambda place: place[1])
    last = bisect_left(places, answer.start + len(answer.text), key=lambda place: place[0]) - 1
    return (first, last) if first <= last else None


def _target(answer: Place | None, window: range) -> Place:
    """The rows of a window where the answer begins and ends; those of "no answer" unless the window shows all of it."""
    if answer is None or answer[0] not in window or answer[1] not in window:
        return NO_ANSWER, NO_ANSWER
    first, last = (NO_ANSWER + 1 + token - window.start for token in answer)
    return first, last
