"""Translations of texts from a model folder: `heedful.load(folder).translate(texts)`.

Texts are read in chunks. A chunk's texts are sorted by length and cut into batches, the workers each decode one batch,
and the translations come out in the order of the texts. A text without any word is its own translation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from heedful.checkpoints.translation_folder import TranslationFolder, TranslationModel
from heedful.data.batching import cut_by_tokens
from heedful.data.chance import hashed
from heedful.decoding import Beam, Hypothesis, Sampling
from heedful.errors import HeedfulError
from heedful.inference.ctranslate2_engine import Ctranslate2Engine, engine_if_possible
from heedful.inference.embedder import TruncationWarning
from heedful.inference.int8 import computes_in_int8, translator_in_int8
from heedful.inference.teacher_forced import Alignment, PairScore, align_pairs, encode_sides, score_pairs
from heedful.inference.transformer_attention import TransformerMaps, transformer_maps
from heedful.inference.workers import worker_pool, workers_of
from heedful.models.transformer import Transformer
from heedful.nn.packed_linear import can_pack
from heedful.tasks.translate_decoding import longest_translation
from heedful.tasks.translate_search import search
from heedful.text.sides import Symbols
from heedful.text.tokenizer import was_truncated

TEXTS_PER_CHUNK = 1024
# Source tokens that are decoded together, each with all hypotheses of its sentence. Some sentences take far more steps
# than most, and the fewer batches there are, the fewer steps are taken for a few sentences alone. But keys and values
# of all that was said are kept, so that large models get fewer: about so many numbers for each place in the beam.
TOKENS_PER_BATCH, LEAST_TOKENS = 4096, 1024
NUMBERS_PER_BATCH = 1 << 22
ENGINES = ("auto", "heedful", "ctranslate2")
BEAM = Beam()

# Sources, how many symbols each may have, how to search, and chance where it is needed.
Decode = Callable[[Sequence[Sequence[int]], Sequence[int], Beam | Sampling, torch.Generator], list[list[Hypothesis]]]


@dataclass(frozen=True)
class Translation:
    """A translation, how good the search found it, and how probable it is to the model."""

    text: str
    score: float  # log-probability / |y|^α, see `heedful.decoding`
    log_probability: float
    finished: bool  # whether it ends by itself and was not cut at the greatest length


@dataclass(frozen=True)
class Translated:
    """A text with its translations, the best or first drawn in front."""

    text: str
    translations: list[Translation]
    truncated: bool  # whether the text was longer than the model and was cut

    @property
    def best(self) -> str:
        """The text of the first translation."""
        return self.translations[0].text

    @property
    def empty(self) -> bool:
        """Whether there was nothing to translate."""
        return not self.text.strip()


# What a text without any word becomes.
NOTHING = Translation("", 0.0, 0.0, True)


@dataclass(frozen=True)
class _Asked:
    """How to translate."""

    how: Beam | Sampling
    max_length: int | None
    seed: int
    scores: bool = True  # whether more than the texts of translations is wanted


class Translator:
    """A translation model with its tokenizers.

    With the engine `auto`, CTranslate2 decodes where it is installed, can express the model, and only texts are asked
    for, because it is faster, most of all in int8; scores and samples come from our own search, whose `int8` tells what
    it costs, found out on `texts`, some of the user's own.
    """

    def __init__(
        self,
        folder: TranslationFolder,
        device: str = "cpu",
        engine: str = "auto",
        precision: str = "auto",
        force: bool = False,
        texts: Iterable[str] = (),
    ) -> None:
        if engine not in ENGINES:
            raise HeedfulError(f"no engine is called {engine!r}", remedy=f"choose {' or '.join(ENGINES)}")
        self.folder = folder
        self.device = device
        self.symbols = Symbols.of(folder.sides.target)
        rounds = computes_in_int8(precision, device, folder.int8 is not None, force)
        self._always = Ctranslate2Engine(folder, device, rounds) if engine == "ctranslate2" else None
        self._for_texts = engine_if_possible(folder, device, rounds) if engine == "auto" else None
        folder.model.to(device)
        self.int8 = translator_in_int8(folder, texts) if rounds else None
        if device == "cpu" and can_pack() and isinstance(folder.model, Transformer):
            folder.model.pack()

    def translate(
        self, texts: Sequence[str], beam: int = 5, length_penalty: float = 1.0, max_length: int | None = None
    ) -> list[str]:
        """The translation of each text: the best that a beam of this size finds, or greedy search for 1.

        length_penalty  α of the score log P(y | x) / |y|^α by which hypotheses are compared
        max_length      the most tokens a translation may have; None for some more than are ever needed
        """
        return [one.best for one in self._all(texts, _Asked(Beam(beam, length_penalty), max_length, 0, scores=False))]

    def hypotheses(
        self, texts: Sequence[str], how: Beam | Sampling = BEAM, max_length: int | None = None, seed: int = 0
    ) -> list[list[Translation]]:
        """Translations of each text with their scores: the `n_best` of a beam, best first, or `count` samples."""
        return [one.translations for one in self._all(texts, _Asked(how, max_length, seed))]

    def _all(self, texts: Sequence[str], asked: _Asked) -> list[Translated]:
        if isinstance(texts, str):
            raise HeedfulError("texts is a single string", remedy="give a list of texts, such as [text]")
        found = list(self.stream(texts, asked.how, asked.max_length, asked.seed, scores=asked.scores))
        _warn(sum(one.truncated for one in found), len(found), self.folder.max_length)
        return found

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """log P(target | source) of each pair of source and target, over all symbols of the target and its end."""
        found = self.pair_scores(pairs)
        _warn(sum(one.truncated for one in found), len(found), self.folder.max_length)
        return [one.log_probability for one in found]

    def pair_scores(self, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
        """As `score`, with the number of symbols, and whether a side was too long."""
        return score_pairs(self.folder, encode_sides(self.folder, pairs))

    def alignments(
        self, texts: Sequence[str], translations: Sequence[str] | None = None, layer: int = -1, head: int | None = None
    ) -> list[Alignment]:
        """What each piece of a translation looks at in its source; without `translations`, those of `translate`.

        A Transformer has decoder layers 1 … L, counted from the end by -1 … -L, and heads 0 … H - 1; None is the mean
        of all heads.
        """
        said = self.translate(texts) if translations is None else translations
        pairs = encode_sides(self.folder, list(zip(texts, said, strict=True)))
        return align_pairs(self.folder, pairs, layer, head)

    def attention(self, texts: Sequence[str], translations: Sequence[str] | None = None) -> list[TransformerMaps]:
        """All three attentions of a Transformer for each text and its translation, by default its own."""
        said = self.translate(texts) if translations is None else translations
        return transformer_maps(self.folder, encode_sides(self.folder, list(zip(texts, said, strict=True))))

    def stream(
        self,
        texts: Iterable[str],
        how: Beam | Sampling = BEAM,
        max_length: int | None = None,
        seed: int = 0,
        at_once: int = TEXTS_PER_CHUNK,
        advance: Callable[[int], object] = lambda done: None,
        scores: bool = True,
    ) -> Iterator[Translated]:
        """As `hypotheses`, for any number of texts in constant memory: so many `at_once`, in order.

        Samples depend on the seed and on all texts. `advance` is told of every so many that are done. Without `scores`
        the best translation may come from a faster engine, whose scores are not quite ours.
        """
        asked = _Asked(how, self.check_length(max_length), seed, scores)
        source, before = iter(texts), 0
        while chunk := list(islice(source, at_once)):
            yield from self._translated(chunk, asked, before, advance)
            before += len(chunk)

    def _translated(
        self, texts: Sequence[str], asked: _Asked, before: int, advance: Callable[[int], object]
    ) -> list[Translated]:
        """A chunk of texts, which come after so many others, with their translations."""
        encodings = self.folder.sides.source.encode_batch(texts, self.folder.max_length, offsets=False)
        sources = [encoding.ids for encoding in encodings]
        worded = [number for number, text in enumerate(texts) if text.strip()]
        lengths = [len(sources[number]) for number in worded]
        workers = workers_of(torch.get_num_threads())
        cut = cut_by_tokens(lengths, equal_share(lengths, tokens_at_once(self.folder.model), workers))
        batches = [[worded[place] for place in places] for places in cut]
        found: dict[int, list[Translation]] = {}

        def compute(numbers: list[int]) -> list[list[Hypothesis]]:
            return self._hypotheses([sources[number] for number in numbers], asked, before + numbers[0])

        for numbers, decoded in zip(batches, _results(compute, batches), strict=True):
            for number, hypotheses in zip(numbers, decoded, strict=True):
                found[number] = [self._translation(one) for one in hypotheses]
            advance(len(numbers))
        advance(len(texts) - len(worded))
        return [
            Translated(text, found.get(number, [NOTHING]), was_truncated(encoding))
            for number, (text, encoding) in enumerate(zip(texts, encodings, strict=True))
        ]

    def decode(
        self, sources: Sequence[Sequence[int]], how: Beam = BEAM, max_length: int | None = None
    ) -> list[list[Translation]]:
        """The translations of texts that are ids already, in one batch."""
        found = self._hypotheses(sources, _Asked(how, self.check_length(max_length), seed=0), 0)
        return [[self._translation(one) for one in hypotheses] for hypotheses in found]

    def _hypotheses(self, sources: Sequence[Sequence[int]], asked: _Asked, number: int) -> list[list[Hypothesis]]:
        """One batch, the first of which has this number."""
        decode: Decode = self._always or (None if asked.scores else self._for_texts) or self._search
        return decode(sources, self._longest(sources, asked), asked.how, self._chance(asked, number))

    def _longest(self, sources: Sequence[Sequence[int]], asked: _Asked) -> list[int]:
        if asked.max_length is not None:
            return [asked.max_length] * len(sources)
        return [longest_translation(len(ids), self.folder.max_length) for ids in sources]

    def _search(
        self, sources: Sequence[Sequence[int]], longest: Sequence[int], how: Beam | Sampling, rng: torch.Generator
    ) -> list[list[Hypothesis]]:
        return search(self.folder.model, sources, longest, self.symbols, how, rng)

    def _translation(self, said: Hypothesis) -> Translation:
        text = self.folder.sides.target.decode(said.ids)
        return Translation(text, said.score, said.log_probability, said.finished)

    def _chance(self, asked: _Asked, number: int) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(int(hashed(asked.seed, number)[0]) >> 1)

    def check_length(self, max_length: int | None) -> int | None:
        """The greatest length of a translation; one that the model cannot say is refused."""
        most = self.folder.max_length
        if max_length is not None and not 1 <= max_length <= most:
            what = f"translations of at most {max_length} tokens"
            raise HeedfulError(what, remedy=f"this model can say at least 1 and at most {most}")
        return max_length


def tokens_at_once(model: TranslationModel) -> int:
    """How many source tokens are decoded together."""
    if not isinstance(model, Transformer):
        return TOKENS_PER_BATCH
    numbers = 2 * model.config.width * model.config.decoder_layers
    return min(TOKENS_PER_BATCH, max(LEAST_TOKENS, NUMBERS_PER_BATCH // numbers))


def equal_share(lengths: Sequence[int], most: int, workers: int) -> int:
    """The tokens of a batch, about `most` or fewer, if each worker is to get as many batches as any other."""
    batches = workers * math.ceil(sum(lengths) / (workers * most))
    share = math.ceil(sum(lengths) / max(1, batches)) + max(lengths, default=0)  # batches are not always full
    return max(min(LEAST_TOKENS, most), share)


def _results(
    compute: Callable[[list[int]], list[list[Hypothesis]]], batches: Sequence[list[int]]
) -> Iterator[list[list[Hypothesis]]]:
    """The results of all batches in order; a single one on all cores, without the cost of starting workers."""
    if len(batches) == 1:
        yield compute(batches[0])
        return
    with worker_pool() as pool:
        yield from pool.map(compute, batches)


def _warn(truncated: int, total: int, limit: int) -> None:
    if truncated:
        message = f"{truncated} of {total} texts were longer than {limit} tokens and were cut"
        warnings.warn(message, TruncationWarning, stacklevel=3)  # the line that called the translator
