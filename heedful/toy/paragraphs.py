"""Paragraphs and questions about them, as in SQuAD, and what words alone can make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from heedful.toy.bag_of_words import Bag, accuracy, bag, choose, pair_bag


class Span(NamedTuple):
    """A piece of a text and where it starts, in code points."""

    text: str
    start: int


class Question(NamedTuple):
    """A question about a paragraph, as in SQuAD."""

    context: str
    question: str
    span: Span

    @property
    def inputs(self) -> tuple[str, str]:
        return self.context, self.question

    @property
    def answer(self) -> Span:
        return self.span


def starts_of(pattern: str, slots: dict[str, str]) -> dict[str, int]:
    """Where the filling of each slot starts in the filled pattern."""
    return {slot: len(pattern[: pattern.index(f"{{{slot}}}")].format(**slots)) for slot in slots}


def sentences(context: str) -> Iterator[Span]:
    """The sentences of a paragraph."""
    start = 0
    for end in (i + 1 for i, character in enumerate(context) if character in ".。"):
        text = context[start:end]
        yield Span(text.strip(), start + len(text) - len(text.lstrip()))
        start = end


# Which answer a question asks for, the sentence that tells it, and all answers of that kind that stand there.
Facts = Callable[[str, str], tuple[str, Span, dict[str, Span]]]


def baseline(facts: Facts) -> Callable[[Sequence[Question], Sequence[Question]], float]:
    """Choose among the answers of the right kind by the words around them and the words of the question."""

    def candidates(row: Question) -> list[tuple[Span, Bag]]:
        _, sentence, answers = facts(*row.inputs)
        return [(span, bag(span.text, "answer ") + pair_bag(row.question, sentence.text)) for span in answers.values()]

    def measured(train: Sequence[Question], dev: Sequence[Question]) -> float:
        seen, asked = [candidates(row) for row in train], [candidates(row) for row in dev]
        right = [[span for span, _ in found].index(row.span) for found, row in zip(seen, train, strict=True)]
        picked = choose([[b for _, b in found] for found in seen], right, [[b for _, b in found] for found in asked])
        return accuracy([found[i][0] for found, i in zip(asked, picked, strict=True)], [row.span for row in dev])

    return measured
