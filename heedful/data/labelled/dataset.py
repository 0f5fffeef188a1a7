"""Labelled data once it is read: text rows, tagged words, questions and choices, each knowing where it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

from heedful.errors import HeedfulError, counted

E = TypeVar("E")
BadRows = Literal["error", "skip"]
PLACES = 3  # how many are named of each kind


@dataclass(frozen=True)
class Remark:
    """Something odd in a file that was read all the same."""

    what: str  # such as "rows with another number of columns, left out"
    count: int
    places: tuple[str, ...]  # the first few, as file:line

    def __str__(self) -> str:
        return f"{self.count:,} {self.what} (first: {', '.join(self.places)})"


@dataclass(frozen=True)
class Dataset(Generic[E]):
    """The examples of a file, in order, what was odd about it, and what is wrong with rows that gave no example."""

    examples: Sequence[E]
    remarks: tuple[Remark, ...] = ()
    bad: tuple[HeedfulError, ...] = ()

    def settled(self, bad_rows: BadRows | None = None) -> Dataset[E]:
        """The same without bad rows: they are refused, or with `skip` left out and remarked; None allows no choice."""
        if not self.bad:
            return self
        if bad_rows == "skip" and self.examples:
            return replace(self, remarks=(*self.remarks, self.bad_remark), bad=())
        first, count = self.bad[0], len(self.bad)
        choice = "; `bad_rows` skip leaves such rows out" if bad_rows and self.examples else ""
        if count == 1:
            raise HeedfulError(first.what, where=first.where, remedy=f"{first.remedy}{choice}")
        what = f"{counted(count, 'row')} cannot be used; the first: {first.what}"
        where = ", ".join(str(error.where) for error in self.bad[:PLACES]) + (" …" if count > PLACES else "")
        raise HeedfulError(what, where=where, remedy=f"{first.remedy}{choice}")

    @property
    def bad_remark(self) -> Remark:
        """The bad rows as a remark."""
        places = tuple(f"{error.where} {error.what}" for error in self.bad[:PLACES])
        return Remark("rows that cannot be used, left out", len(self.bad), places)


@dataclass(frozen=True)
class Columns:
    """Which columns of a table (or fields of an object) to take; None finds the usual names in the header."""

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    separator: str | None = None  # what parts several labels in one cell; None finds it


@dataclass(frozen=True)
class TextRow:
    """A text or a pair of texts, with a label or a number."""

    text: str
    pair: str | None = None
    label: str | None = None  # as it stands in the file; a number for regression
    where: str = ""  # file:line

    @property
    def empty(self) -> bool:
        """Whether a text is missing that should be there."""
        return not self.text.strip() or (self.pair is not None and not self.pair.strip())

    @property
    def cells(self) -> dict[str, str]:
        """What was given, by column."""
        return {"text": self.text} if self.pair is None else {"text": self.text, "pair": self.pair}

    @property
    def shown(self) -> str:
        """The text, for a reader."""
        return self.text if self.pair is None else f"{self.text} | {self.pair}"

    @property
    def truth(self) -> str:
        """The label, for a reader."""
        return self.label or ""


@dataclass(frozen=True)
class MultiLabelRow(TextRow):
    """A text or a pair of texts with any number of labels; None where nobody has said which."""

    labels: tuple[str, ...] | None = None

    @property
    def truth(self) -> str:
        """The labels, for a reader."""
        return " | ".join(self.labels or ()) or "(no label)"


@dataclass(frozen=True)
class TaggedWords:
    """A sentence of words, with a tag each; `spans` are the places of the words in `text`, in code points."""

    words: tuple[str, ...]
    text: str
    spans: tuple[tuple[int, int], ...]
    tags: tuple[str, ...] | None = None  # IOB2
    where: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is no word."""
        return not self.words

    @property
    def cells(self) -> dict[str, str]:
        """What was given, by column."""
        return {"text": self.text}

    @property
    def shown(self) -> str:
        """The text, for a reader."""
        return self.text

    @property
    def truth(self) -> str:
        """The words that are tagged, for a reader."""
        return tagged_words(self.words, self.tags or ())


@dataclass(frozen=True)
class SentencePair:
    """A text, perhaps one that means the same and others that do not, or how similar the two are."""

    text: str
    pair: str | None = None
    negatives: tuple[str, ...] = ()
    score: float | None = None
    where: str = ""

    @property
    def empty(self) -> bool:
        """Whether a text is missing that should be there."""
        return not self.text.strip() or (self.pair is not None and not self.pair.strip())

    @property
    def cells(self) -> dict[str, str]:
        """What was given, by column."""
        return TextRow(self.text, self.pair).cells

    @property
    def shown(self) -> str:
        """The texts, for a reader."""
        return TextRow(self.text, self.pair).shown

    @property
    def truth(self) -> str:
        """The score, for a reader."""
        return "" if self.score is None else f"{self.score:g}"


def tagged_words(words: Sequence[str], tags: Sequence[str]) -> str:
    """The words that have a tag beside O, with it, for a reader."""
    return " ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=False) if tag != "O") or "(no entities)"


@dataclass(frozen=True)
class Answer:
    """A stretch of a context, by its first character."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """A question about a context; without answers it has none in this context (or nobody has said)."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    where: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is no question or no context."""
        return not self.question.strip() or not self.context.strip()

    @property
    def cells(self) -> dict[str, str]:
        """What was asked, by column; the context is where the question came from."""
        return {"question": self.question}

    @property
    def shown(self) -> str:
        """The question, for a reader."""
        return self.question

    @property
    def truth(self) -> str:
        """The answers, for a reader."""
        return " | ".join(dict.fromkeys(answer.text for answer in self.answers)) or "(no answer)"


@dataclass(frozen=True)
class Choice:
    """What came before (a context, a question, the start of a sentence) and several ways to go on."""

    context: str
    question: str
    endings: tuple[str, ...]
    label: int | None = None
    where: str = ""

    @property
    def empty(self) -> bool:
        """Whether one of the endings is missing."""
        return not all(ending.strip() for ending in self.endings)

    @property
    def cells(self) -> dict[str, str]:
        """What came before, by column."""
        return {"context": self.context, "question": self.question}

    @property
    def shown(self) -> str:
        """What came before, for a reader."""
        return " ".join(filter(None, (self.context, self.question)))

    @property
    def truth(self) -> str:
        """The right ending, for a reader."""
        return "" if self.label is None else self.endings[self.label]
