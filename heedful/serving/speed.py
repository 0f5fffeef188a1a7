"""A first batch for every model: it warms up, and tells how fast this machine is."""

from __future__ import annotations

import time

from heedful.serving.batcher import Batcher
from heedful.serving.catalogue import Catalogue, Served
from heedful.serving.fair_queue import Job
from heedful.serving.verbs.embed import EmbedAsked
from heedful.serving.verbs.translate import TranslateAsked

SENTENCES = [f"The {n}th train to the river was late again because of the weather." for n in range(64)]
# Translating takes longer than a vector, and a few sentences tell enough.
FEW, SYMBOLS = 4, 16


def warm_up(catalogue: Catalogue, batcher: Batcher) -> dict[str, str]:
    """A sentence on the speed of each model."""
    return {name: _speed(served, batcher) for name, served in catalogue.models.items()}


def _speed(served: Served, batcher: Batcher) -> str:
    seconds, tokens, count = 0.0, 0, 0
    for _ in range(2):  # the first is slower
        seconds, tokens, count = _timed(served, batcher)
    speed = (
        f"{count / seconds:,.0f} sentences/s, {tokens / seconds:,.0f} tokens/s" if seconds else "too fast to measure"
    )
    return f"measured: {speed} in calls of {count} sentences of {tokens / count:.0f} tokens"


def _timed(served: Served, batcher: Batcher) -> tuple[float, int, int]:
    if "embed" in served.verbs:
        texts = SENTENCES
        work = served.verbs["embed"].work(EmbedAsked.model_validate({"inputs": texts}), texts)
    else:
        texts = SENTENCES[:FEW]
        asked = TranslateAsked.model_validate({"inputs": texts, "max_length": SYMBOLS})
        work = served.verbs["translate"].work(asked, texts)
    assert work.program is not None
    start = time.monotonic()
    batcher.submit(Job("start", work.program, work.units, work.sizes)).future.result()
    return time.monotonic() - start, sum(work.sizes), len(texts)
