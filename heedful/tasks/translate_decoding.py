"""What a model says to many sentences, in batches by tokens: an evaluation's translations while it is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from heedful.checkpoints.translation_folder import TranslationModel
from heedful.data.batching import TOKENS_PER_BATCH, cut_by_tokens
from heedful.decoding import Beam
from heedful.tasks.translate_search import search
from heedful.text.sides import Symbols

Said = list[tuple[int, ...]]
Mapper = Callable[[Callable[[list[int]], Said], Iterable[list[int]]], Iterable[Said]]


def longest_translation(source: int, limit: int) -> int:
    """How many symbols, the end included, a translation of so many source tokens may have, and never over `limit`."""
    return min(limit, 3 * source + 20)


def decode(
    model: TranslationModel,
    sources: Sequence[Sequence[int]],
    symbols: Symbols,
    limit: int,
    beam: int = 1,
    mapper: Mapper = map,
) -> Said:
    """What the model says to each source, in order: greedily, or the best of a beam.

    Batches are computed one after the other, or as the `mapper` does it.
    """

    def compute(numbers: list[int]) -> Said:
        batch = [sources[i] for i in numbers]
        longest = [longest_translation(len(source), limit) for source in batch]
        return [hypotheses[0].ids for hypotheses in search(model, batch, longest, symbols, Beam(beam))]

    batches = cut_by_tokens([len(source) for source in sources], TOKENS_PER_BATCH)
    found: dict[int, tuple[int, ...]] = {}
    for numbers, said in zip(batches, mapper(compute, batches), strict=True):
        found.update(zip(numbers, said, strict=True))
    return [found[i] for i in range(len(sources))]
