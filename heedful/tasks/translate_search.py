"""From a translation model to hypotheses: the one way that evaluation, Python and the command line go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from heedful.checkpoints.translation_folder import TranslationModel
from heedful.data.batching import flat_batch
from heedful.decoding import Beam, Hypothesis, Sampling, beam_search, greedy, sample
from heedful.tasks.translate import device_of
from heedful.text.sides import Symbols


def search(
    model: TranslationModel,
    sources: Sequence[Sequence[int]],
    longest: Sequence[int],
    symbols: Symbols,
    how: Beam | Sampling,
    rng: torch.Generator | None = None,
) -> list[list[Hypothesis]]:
    """What the model says to a batch of sources, in order, with at most `longest` symbols each.

    It is faster if the longest sources come first. Samples need an `rng` on the model's device.
    """
    device = device_of(model)
    decoder: Any = model  # each kind of model has its own kind of state
    hypotheses = how.count if isinstance(how, Sampling) else how.size
    with torch.inference_mode():
        state = decoder.start(decoder.encode(flat_batch(sources).to(device)), hypotheses, max(longest))
        if isinstance(how, Sampling):
            assert rng is not None
            return sample(decoder.step, state, longest, symbols.start, symbols.end, how, rng, symbols.banned, device)
        if how.size == 1:
            ends = (symbols.start, symbols.end, symbols.banned)
            return [[one] for one in greedy(decoder.step, state, longest, *ends, device, how.length_penalty)]
        asked = (longest, symbols.start, symbols.end, how, symbols.banned, device)
        return beam_search(decoder.advance, state, *asked, decoder.logits)
