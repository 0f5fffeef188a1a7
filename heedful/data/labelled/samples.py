"""Examples of every task seen alike: what identifies one, what a model would read of it, and how it is labelled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch

from heedful.data.labelled.dataset import Choice, MultiLabelRow, Question, TaggedWords, TextRow
from heedful.text.bert_words import bert_words

# A text, a pair of texts, or a sentence of words.
Input = str | tuple[str, str] | list[str]


@dataclass(frozen=True)
class Sample:
    """An example of some task."""

    key: tuple[str, ...]  # equal for examples that ask the same
    inputs: tuple[Input, ...]  # one, or one for each choice
    label: str | None  # equal for examples that are answered the same
    counted: tuple[str, ...]  # what a table of the labels counts
    empty: bool  # whether a text is missing that should be there
    where: str
    passage: str | None = None  # a text that several examples may be about

    @property
    def characters(self) -> int:
        return max(len(one) if isinstance(one, str) else sum(map(len, one)) for one in self.inputs)

    @property
    def words(self) -> int:
        return max(map(_words, self.inputs))


def _words(one: Input) -> int:
    if isinstance(one, list):
        return len(one)
    return sum(len(bert_words(text)) for text in ([one] if isinstance(one, str) else one))


@singledispatch
def sample_of(example: object) -> Sample:
    """An example of the labelled data as a sample."""
    raise TypeError(f"no example: {example!r}")


@sample_of.register
def _(row: TextRow) -> Sample:
    key = (row.text,) if row.pair is None else (row.text, row.pair)
    whole: Input = row.text if row.pair is None else (row.text, row.pair)
    counted = () if row.label is None else (row.label,)
    return Sample(key, (whole,), row.label, counted, row.empty, row.where)


@sample_of.register
def _(row: MultiLabelRow) -> Sample:
    plain = sample_of(TextRow(row.text, row.pair, None, row.where))
    label = None if row.labels is None else "\n".join(sorted(row.labels))
    return replace(plain, label=label, counted=row.labels or ())


@sample_of.register
def _(sentence: TaggedWords) -> Sample:
    tags = sentence.tags or ()
    entities = tuple(tag[2:] for tag in tags if tag.startswith("B-"))
    plain = not any(tag == "O" or tag.startswith(("B-", "I-")) for tag in tags)
    counted, label = tags if plain else entities, " ".join(tags) if tags else None
    return Sample(sentence.words, (list(sentence.words),), label, counted, sentence.empty, sentence.where)


@sample_of.register
def _(question: Question) -> Sample:
    key = (question.question, question.context)
    label = "\n".join(sorted({answer.text for answer in question.answers}))
    counted = ("answer" if question.answers else "no answer",)
    return Sample(key, (key,), label, counted, question.empty, question.where, question.context)


@sample_of.register
def _(choice: Choice) -> Sample:
    # With a context the question begins each ending, without one the question is what comes before.
    if choice.context:
        inputs = tuple((choice.context, f"{choice.question} {ending}".strip()) for ending in choice.endings)
    else:
        inputs = tuple((choice.question, ending) for ending in choice.endings)
    label = None if choice.label is None else str(choice.label)
    key = (choice.context, choice.question, *choice.endings)
    counted = () if label is None else (label,)
    return Sample(key, inputs, label, counted, choice.empty, choice.where, choice.context or None)
