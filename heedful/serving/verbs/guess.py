"""What a masked language model guesses: hidden words, and how natural a text is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any, ClassVar

from pydantic import Field

from heedful.inference.embedder import Embedder
from heedful.inference.fill_mask import TextWithBlanks, fill_blanks, text_with_blanks
from heedful.inference.masked_lm import MaskedLm
from heedful.inference.pseudo_perplexity import Score, hidden_losses, masked_texts, score_of
from heedful.inference.scoring import LineScore, counted, kind_of_score, score_lines, score_told, window_of
from heedful.serving.verbs.verb import AskedPairs, AskedTexts, Verb, Work, two_texts

MOST_GUESSES = 1000


class FillAsked(AskedPairs):
    """Texts with masks in them."""

    top: int = Field(5, ge=1, le=MOST_GUESSES, description="How many guesses for each mask.")


@dataclass(frozen=True)
class FillProgram:
    """Guesses of one model."""

    one_pass: ClassVar[bool] = True
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

    max_length: int | None = Field(
        None, ge=3, le=1_000_000, description="The tokens of a window; a longer text has several that overlap."
    )


@dataclass(frozen=True)
class ScoreProgram:
    """The losses of one model."""

    one_pass: ClassVar[bool] = True
    lm: MaskedLm

    def compute(self, units: Sequence[tuple[list[int], int]]) -> Sequence[float]:
        """The loss of the hidden token of each copy of a text."""
        return hidden_losses(self.lm, units)


class MaskedScore(Verb[ScoreAsked]):
    """How natural a masked language model finds a text."""

    name: ClassVar[str] = "score"
    about: ClassVar[str] = "The pseudo-perplexity of texts: every token is hidden in turn and guessed."
    asked = ScoreAsked

    def __init__(self, model: Embedder) -> None:
        self.model = model

    def work(self, asked: ScoreAsked, inputs: Sequence[Any]) -> Work:
        lm, given = self.model.masked_lm, [counted(self.model, text) for text in inputs]
        texts = list(masked_texts(lm, [text for text, _, _ in given], _limit(self.model, asked)))
        units = [copy for text in texts for copy in text.copies]
        ends = list(accumulate(len(text.places) for text in texts))

        def told(losses: list[Any]) -> list[Any]:
            own = [losses[end - len(text.places) : end] for text, end in zip(texts, ends, strict=True)]
            return _lines([score_of(lm, text, part) for text, part in zip(texts, own, strict=True)], given)

        return Work(ScoreProgram(lm), units, [len(ids) for ids, _ in units], told)


@dataclass(frozen=True)
class LinesProgram:
    """The scores of one language model."""

    one_pass: ClassVar[bool] = False
    model: Embedder
    max_length: int | None

    def compute(self, units: Sequence[str]) -> Sequence[LineScore]:
        """The score of each text."""
        return list(score_lines(self.model, units, self.max_length))


class LanguageModelScore(Verb[ScoreAsked]):
    """How natural a language model finds a text."""

    name: ClassVar[str] = "score"
    about: ClassVar[str] = "The perplexity of texts, from left to right, or in both directions where a model has two."
    asked = ScoreAsked

    def __init__(self, model: Embedder) -> None:
        self.model = model

    def work(self, asked: ScoreAsked, inputs: Sequence[Any]) -> Work:
        max_length = None if asked.max_length is None else _limit(self.model, asked)
        window_of(self.model, max_length)  # refuses what cannot be asked for
        sizes = [max(1, len(encoding.ids)) for encoding in self.model.tokenizer.pieces(inputs)]
        kind, program = kind_of_score(self.model), LinesProgram(self.model, max_length)
        return Work(program, inputs, sizes, lambda lines: [score_told(line, kind) for line in lines])


def _limit(model: Embedder, asked: ScoreAsked) -> int:
    return min(asked.max_length or model.limit(None), model.limit(None))


def _lines(scores: Sequence[Score], given: Sequence[tuple[str, int, int]]) -> list[dict[str, Any]]:
    lines = zip(scores, given, strict=True)
    return [
        score_told(LineScore(score, 0 if score.empty else words, marks), "pseudo") for score, (_, words, marks) in lines
    ]
