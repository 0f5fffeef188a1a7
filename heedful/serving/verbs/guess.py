"""What a masked language model guesses: hidden words, and how natural a text is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any, ClassVar

from pydantic import Field

from heedful.inference.fill_mask import TextWithBlanks, fill_blanks, text_with_blanks
from heedful.inference.masked_lm import MaskedLm
from heedful.inference.pseudo_perplexity import MaskedText, Score, hidden_losses, masked_texts, score_of
from heedful.serving.verbs.verb import AskedPairs, AskedTexts, Verb, Work, two_texts

MOST_GUESSES = 1000


class FillAsked(AskedPairs):
    """Texts with masks in them."""

    top: int = Field(5, ge=1, le=MOST_GUESSES, description="How many guesses for each mask.")


@dataclass(frozen=True)
class FillProgram:
    """Guesses of one model."""

    lm: MaskedLm
    top: int

    def compute(self, units: Sequence[TextWithBlanks]) -> Sequence[Any]:
        """The guesses for texts in one batch."""
        return fill_blanks(self.lm, units, self.top)


class Fill(Verb[FillAsked]):
    """The likeliest words for every mask."""

    name: ClassVar[str] = "fill"
    about: ClassVar[str] = "The likeliest words for every mask of a text or pair, with their probabilities."
    asked = FillAsked

    def __init__(self, lm: MaskedLm) -> None:
        self.lm = lm

    def read(self, asked: FillAsked, given: Any) -> Any:
        return text_with_blanks(self.lm, *two_texts(given))

    def work(self, asked: FillAsked, inputs: Sequence[Any]) -> Work:
        sizes = [len(text.ids) for text in inputs]
        return Work(FillProgram(self.lm, asked.top), inputs, sizes, _told)


def _told(results: list[Any]) -> list[Any]:
    return [{"masks": [asdict(blank) for blank in blanks]} for blanks in results]


class ScoreAsked(AskedTexts):
    """Texts to be judged."""

    max_length: int | None = Field(None, ge=3, le=1_000_000, description="The limit in tokens; what is longer is cut.")


@dataclass(frozen=True)
class ScoreProgram:
    """The losses of one model."""

    lm: MaskedLm

    def compute(self, units: Sequence[tuple[list[int], int]]) -> Sequence[float]:
        """The loss of the hidden token of each copy of a text."""
        return hidden_losses(self.lm, units)


class MaskedScore(Verb[ScoreAsked]):
    """How natural a masked language model finds a text."""

    name: ClassVar[str] = "score"
    about: ClassVar[str] = "The pseudo-perplexity of texts: every token is hidden in turn and guessed."
    asked = ScoreAsked

    def __init__(self, lm: MaskedLm, limit: int) -> None:
        self.lm, self.limit = lm, limit

    def work(self, asked: ScoreAsked, inputs: Sequence[Any]) -> Work:
        texts = list(masked_texts(self.lm, inputs, min(asked.max_length or self.limit, self.limit)))
        units = [(text.ids, place) for text in texts for place in text.places]
        ends = list(accumulate(len(text.places) for text in texts))

        def told(losses: list[Any]) -> list[Any]:
            own = (losses[end - len(text.places) : end] for text, end in zip(texts, ends, strict=True))
            return [_score(self.lm, text, part) for text, part in zip(texts, own, strict=True)]

        cut = [number for number, text in enumerate(texts) if text.truncated]
        return Work(ScoreProgram(self.lm), units, [len(ids) for ids, _ in units], told, cut)


def _score(lm: MaskedLm, text: MaskedText, losses: list[float]) -> dict[str, Any]:
    return score_told(score_of(lm, text, losses))


def score_told(score: Score) -> dict[str, Any]:
    """A score with what follows from it, as JSON has it."""
    counts = {name: value for name, value in vars(score).items() if name != "loss_sum"}
    return {"perplexity": score.perplexity, "loss": score.loss, **counts}
