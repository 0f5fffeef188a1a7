"""How natural a model finds each line of a text, by what the model is: `heedful score`.

A language model is asked from left to right, a masked one by pseudo-perplexity, which is another quantity. A family
joins with its `language_model`, or its `masked_lm`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from heedful.inference.embedder import Embedder
from heedful.inference.left_to_right import score_left_to_right
from heedful.inference.pseudo_perplexity import Score, score_texts

# What WikiText has in place of rare words.
UNKNOWN_MARK = "<unk>"
Kind = Literal["left-to-right", "pseudo"]


@dataclass(frozen=True)
class LineScore:
    """The score of a line, or of several together, and what it is shared out among."""

    score: Score = field(default_factory=Score)
    words: int = 0  # of the raw text, parted by white space
    marks: int = 0  # of them <unk>, which the tokenizer's own token for the unknown stands for

    @property
    def per_word(self) -> float:
        """exp of the loss of a word, the end of the text included: it compares models of different vocabularies."""
        try:
            return math.exp(self.score.loss_sum / self.words) if self.words else math.nan
        except OverflowError:
            return math.inf

    def __add__(self, other: LineScore) -> LineScore:
        return LineScore(self.score + other.score, self.words + other.words, self.marks + other.marks)


def kind_of_score(model: Embedder) -> Kind:
    """What the scores of a model are."""
    return "left-to-right" if model.folder.family.language_model is not None else "pseudo"


def score_lines(model: Embedder, texts: Iterable[str], max_length: int | None = None) -> Iterator[LineScore]:
    """The score of each text, in order and in constant memory; what is longer than `max_length` tokens is cut."""
    counts: deque[tuple[int, int]] = deque()
    given = _counted(texts, counts, _unknown_token(model))
    if kind_of_score(model) == "left-to-right":
        scores = score_left_to_right(
            model.language_model, model.tokenizer, given, max_length or model.encoder.max_length
        )
    else:
        scores = score_texts(model.masked_lm, given, model.limit(max_length))
    for score in scores:
        words, marks = counts.popleft()
        yield LineScore(score, 0 if score.empty else words, marks)


def _counted(texts: Iterable[str], counts: deque[tuple[int, int]], unknown: str | None) -> Iterator[str]:
    """The texts as the tokenizer shall see them; of each its words and its marks are noted."""
    for text in texts:
        seen, words, marks = _counts(text, unknown)
        counts.append((words, marks))
        yield seen


def counted(model: Embedder, text: str) -> tuple[str, int, int]:
    """A text as the tokenizer shall see it, its words and its marks."""
    return _counts(text, _unknown_token(model))


def score_told(line: LineScore, kind: Kind) -> dict[str, Any]:
    """A score with what follows from it, as JSON has it."""
    score, own = line.score, {"words": line.words, "marks": line.marks, "kind": kind}
    counts = {name: value for name, value in vars(score).items() if name != "loss_sum"}
    per_word = {"word_perplexity": line.per_word} if kind == "left-to-right" else {}
    return {"perplexity": score.perplexity, "loss": score.loss, **counts, **own, **per_word}


def _counts(text: str, unknown: str | None) -> tuple[str, int, int]:
    words = text.split()
    return text if unknown is None else text.replace(UNKNOWN_MARK, unknown), len(words), words.count(UNKNOWN_MARK)


def _unknown_token(model: Embedder) -> str | None:
    """The tokenizer's own token for the unknown, if it has one."""
    token = model.tokenizer.special_tokens.get("unk", "")
    return (
        token if token != UNKNOWN_MARK and token.startswith("[") and model.tokenizer.id_of(token) is not None else None
    )
