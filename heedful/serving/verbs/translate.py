"""Translations, and how probable given ones are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from pydantic import Field

from heedful.decoding import Beam
from heedful.errors import HeedfulError
from heedful.inference.teacher_forced import EncodedSides, align_pairs, encode_sides, score_pairs
from heedful.inference.translator import NOTHING, Translation, Translator
from heedful.serving.verbs.verb import Asked, AskedTexts, TextOrPair, Verb, Work
from heedful.text.tokenizer import was_truncated

WIDEST_BEAM = 64


class TranslateAsked(AskedTexts):
    """Texts to translate, and how to search."""

    beam: int = Field(5, ge=1, le=WIDEST_BEAM, description="Hypotheses kept; 1 is greedy search.")
    length_penalty: float = Field(1.0, ge=0.0, le=10.0, description="α in log P(y|x) / |y|^α.")
    n_best: int = Field(1, ge=1, le=WIDEST_BEAM, description="Translations of each text; at most as many as the beam.")
    max_length: int | None = Field(None, ge=1, le=1_000_000, description="Tokens of a translation.")
    alignments: bool = Field(False, description="Also tell what each piece of the best translation looked at.")


@dataclass(frozen=True)
class TranslateProgram:
    """Translations of one model by one search."""

    one_pass: ClassVar[bool] = False
    translator: Translator
    how: Beam
    max_length: int | None
    alignments: bool

    def compute(self, units: Sequence[tuple[str, list[int]]]) -> Sequence[Any]:
        """The translations of texts in one batch, and their alignments."""
        found = self.translator.decode([ids for _, ids in units], self.how, self.max_length)
        if not self.alignments:
            return [(translations, None) for translations in found]
        pairs = [(text, translations[0].text) for (text, _), translations in zip(units, found, strict=True)]
        aligned = align_pairs(self.translator.folder, encode_sides(self.translator.folder, pairs), -1, None)
        return list(zip(found, aligned, strict=True))


class Translate(Verb[TranslateAsked]):
    """Translations of texts."""

    name: ClassVar[str] = "translate"
    about: ClassVar[str] = "The best translations of texts, and on request what each piece looked at."
    asked = TranslateAsked

    def __init__(self, translator: Translator) -> None:
        self.translator = translator

    def work(self, asked: TranslateAsked, inputs: Sequence[Any]) -> Work:
        how, folder = Beam(asked.beam, asked.length_penalty, asked.n_best), self.translator.folder
        self.translator.check_length(asked.max_length)
        encodings = folder.sides.source.encode_batch(inputs, folder.max_length, offsets=False)
        worded = [number for number, text in enumerate(inputs) if text.strip()]
        units = [(inputs[number], encodings[number].ids) for number in worded]

        def told(results: list[Any]) -> list[Any]:
            found = dict(zip(worded, results, strict=True))
            return [_told(*found.get(number, ([NOTHING], None))) for number in range(len(inputs))]

        program = TranslateProgram(self.translator, how, asked.max_length, asked.alignments)
        cut = [number for number, encoding in enumerate(encodings) if was_truncated(encoding)]
        return Work(program, units, [len(ids) for _, ids in units], told, cut)


def _told(translations: Sequence[Translation], alignment: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"translations": [asdict(one) for one in translations]}
    return told if alignment is None else {**told, "alignment": vars(alignment)}


def source_and_target(given: TextOrPair) -> tuple[str, str]:
    """Both texts of a pair."""
    if isinstance(given, str) or len(given) != 2:
        what = "a text alone" if isinstance(given, str) else f"a list of {len(given)} texts"
        raise HeedfulError(f"{what} is no pair", remedy="give [source, translation]")
    return given[0], given[1]


def encoded_sides(units: Sequence[tuple[list[int], list[int]]]) -> EncodedSides:
    """Pairs of ids, which were cut before they became units."""
    return EncodedSides([source for source, _ in units], [target for _, target in units], [False] * len(units))


class PairsAsked(Asked):
    """Sources with their translations."""

    inputs: list[TextOrPair] = Field(min_length=1, description="Lists of a source and its translation.")


@dataclass(frozen=True)
class PairScoreProgram:
    """The probabilities of one translation model."""

    one_pass: ClassVar[bool] = True
    translator: Translator

    def compute(self, units: Sequence[tuple[list[int], list[int]]]) -> Sequence[Any]:
        """The scores of pairs in one batch."""
        return score_pairs(self.translator.folder, encoded_sides(units))


class TranslationScore(Verb[PairsAsked]):
    """How probable a translation is."""

    name: ClassVar[str] = "score"
    about: ClassVar[str] = "log P(target | source) of pairs of a source and its translation."
    asked = PairsAsked

    def __init__(self, translator: Translator) -> None:
        self.translator = translator

    def read(self, asked: PairsAsked, given: Any) -> Any:
        return source_and_target(given)

    def work(self, asked: PairsAsked, inputs: Sequence[Any]) -> Work:
        sides = encode_sides(self.translator.folder, inputs)
        units = list(zip(map(list, sides.sources), map(list, sides.targets), strict=True))

        def told(results: list[Any]) -> list[Any]:
            pairs = zip(results, sides.truncated, strict=True)
            return [{"log_probability": one.log_probability, "symbols": one.symbols} for one, _ in pairs]

        cut = [number for number, truncated in enumerate(sides.truncated) if truncated]
        return Work(PairScoreProgram(self.translator), units, [len(a) + len(b) for a, b in units], told, cut)
