"""How natural a model finds each line of a text, by what the model is: `heedful score`.

A language model is asked from left to right, ELMo in both directions, a masked one by pseudo-perplexity, which is
another quantity. A family joins with its `language_model`, its `two_way_lm` or its `masked_lm`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from heedful.errors import HeedfulError
from heedful.inference.both_directions import score_both_ways
from heedful.inference.embedder import Embedder
from heedful.inference.left_to_right import score_left_to_right
from heedful.inference.pseudo_perplexity import Score, perplexity, score_texts
from heedful.inference.suited_verbs import suited_verbs

# What WikiText has in place of rare words.
UNKNOWN_MARK = "<unk>"
Kind = Literal["left-to-right", "both directions", "pseudo"]


@dataclass(frozen=True)
class LineScore:
    """The score of a line, or of several together, and what it is shared out among."""

    score: Score = field(default_factory=Score)
    words: int = 0  # of the raw text, parted by white space
    marks: int = 0  # of them <unk>, which the tokenizer's own token for the unknown stands for
    ways: Mapping[str, float] = field(default_factory=dict)  # the losses of single directions, where there are two

    @property
    def per_word(self) -> float:
        """exp of the loss of a word, the end of the text included: it compares models of different vocabularies."""
        return perplexity(self.score.loss_sum, self.words)

    def __add__(self, other: LineScore) -> LineScore:
        names = dict.fromkeys([*self.ways, *other.ways])
        ways = {name: self.ways.get(name, 0.0) + other.ways.get(name, 0.0) for name in names}
        return LineScore(self.score + other.score, self.words + other.words, self.marks + other.marks, ways)


def kind_of_score(model: Embedder) -> Kind:
    """What the scores of a model are."""
    family = model.folder.family
    if family.language_model is not None:
        return "left-to-right"
    if family.two_way_lm is not None:
        return "both directions"
    if family.masked_lm is None:
        what = f"a model of the type {model.folder.model_type} gives words no probability"
        raise HeedfulError(what, where=model.folder.path, remedy=suited_verbs(model.folder))
    return "pseudo"


def window_of(model: Embedder, max_length: int | None) -> int | None:
    """How many tokens of a text a model sees at once; None for all: what it has read stays in an LSTM's state."""
    if kind_of_score(model) == "both directions" and max_length is not None:
        what = f"`max_length` has no effect on a model of the type {model.folder.model_type}"
        raise HeedfulError(what, remedy="leave it out: it reads texts of any length")
    return model.limit(max_length) if max_length is not None or model.encoder.has_attention else None


def score_lines(model: Embedder, texts: Iterable[str], max_length: int | None = None) -> Iterator[LineScore]:
    """The score of each text, in order and in constant memory.

    A text of more than `max_length` tokens, or than the model has room for, is read in windows that overlap by half,
    so that each token is scored once.
    """
    counts: deque[tuple[int, int]] = deque()
    given = _counted(texts, counts, _unknown_token(model))
    for score, ways in _scores(model, given, window_of(model, max_length)):
        words, marks = counts.popleft()
        yield LineScore(score, 0 if score.empty else words, marks, ways)


def _scores(model: Embedder, texts: Iterable[str], window: int | None) -> Iterator[tuple[Score, dict[str, float]]]:
    kind = kind_of_score(model)
    if kind == "both directions":
        for one in score_both_ways(model.two_way_lm, texts):
            yield one.score, {"forward": one.forward, "backward": one.backward}
    elif kind == "pseudo":
        yield from ((score, {}) for score in score_texts(model.masked_lm, texts, window))
    else:
        found = score_left_to_right(model.language_model, model.tokenizer, texts, window)
        yield from ((score, {}) for score in found)


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
    if kind == "pseudo":
        return {"pseudo_perplexity": score.perplexity, "loss": score.loss, **counts, **own}
    ways = {f"{name}_perplexity": perplexity(loss, score.tokens) for name, loss in line.ways.items()}
    return {
        "perplexity": score.perplexity,
        "loss": score.loss,
        **ways,
        **counts,
        **own,
        "word_perplexity": line.per_word,
    }


def _counts(text: str, unknown: str | None) -> tuple[str, int, int]:
    words = text.split()
    return text if unknown is None else text.replace(UNKNOWN_MARK, unknown), len(words), words.count(UNKNOWN_MARK)


def _unknown_token(model: Embedder) -> str | None:
    """The tokenizer's own token for the unknown, if it has one."""
    token = model.tokenizer.special_tokens.get("unk", "")
    return (
        token if token != UNKNOWN_MARK and token.startswith("[") and model.tokenizer.id_of(token) is not None else None
    )
