"""What is measured of a trained model without training it any further."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from heedful.checkpoints.encoder_folder import load_encoder
from heedful.checkpoints.folder import ModelFolder
from heedful.inference.embedder import Embedder
from heedful.inference.judged_pairs import agreement, read_pairs, text_vectors
from heedful.inference.nearest import WordVectors
from heedful.inference.scoring import LineScore, kind_of_score, score_lines, score_told
from heedful.json_files import read_json
from heedful.runs.ladder.valid_text import cut_short, first_words, sample_of
from heedful.runs.run import Run
from heedful.runs.settings import Place
from heedful.training.peak_memory import peak_memory
from heedful.training.run_folder import RunFolder
from heedful.views.metrics import read_metrics

# Each token of a pseudo-perplexity costs a pass over its text, so some must stand for all.
PSEUDO_WORDS = 2_000
EMBEDDED_WORDS = 20_000
WARM_UP = 20  # texts, before the clock is started


def of_training(run: Run) -> dict[str, Any]:
    """Steps, time, speed and memory of a run that this process has carried out."""
    folder = RunFolder(run.folder)
    series, timing = read_metrics(folder.metrics).series, read_json(folder.timing)
    return {
        "steps": run.outcome.step,
        "seconds": timing["wall"],
        "start_seconds": timing["parts"]["start"],
        "tokens": series["tokens"].finite[-1],
        "tokens_per_second": median(series["tokens_per_second"].finite),
        "peak_memory": peak_memory(),
        "held_out": dict(run.scores),
    }


def of_size(folder: ModelFolder) -> dict[str, Any]:
    """How many numbers the encoder has, how wide and how deep it is."""
    encoder = load_encoder(folder)  # that of an `Embedder` may be packed, and then has fewer parameters
    count = sum(parameter.numel() for parameter in encoder.parameters())
    shape = encoder.config.described
    return {"parameters": count, "width": encoder.width, "layers": encoder.layer_count, "shape": shape}


def speed(model: Embedder, texts: Sequence[str]) -> dict[str, float]:
    """How fast short texts become vectors; tokens are the model's own, words are parted by white space."""
    wanted = model.features((-1,), "concat", None, "sentence", normalize=False)
    some = list(cut_short(first_words(texts, EMBEDDED_WORDS)))
    list(model.chunks(some[:WARM_UP], wanted))
    began = time.perf_counter()
    tokens = sum(chunk.tokens for chunk in model.chunks(some, wanted))
    seconds = time.perf_counter() - began
    words = sum(len(text.split()) for text in some)
    return {"words_per_second": words / seconds, "tokens_per_second": tokens / seconds, "words": words}


def perplexity(model: Embedder, texts: Sequence[str], length: int) -> dict[str, Any]:
    """The perplexity of a word, or the pseudo-perplexity of a token.

    What has attention reads in windows of the `length` it was trained on: about places further on it knows nothing.
    """
    kind = kind_of_score(model)
    asked = sample_of(texts, PSEUDO_WORDS) if kind == "pseudo" else texts
    lines = score_lines(model, asked, length if model.encoder.has_attention else None)
    return score_told(sum(lines, LineScore()), kind)


def similarity(model: Embedder, pairs: Place, static: bool) -> dict[str, Any]:
    """How far cosines of words and human judgements agree: by static vectors, or by what a word is before context."""
    judged = read_pairs(pairs)
    if static:
        words = WordVectors.of_model(model)
        found = agreement(judged, lambda texts: [words.vector(text) for text in texts])
    else:
        found = agreement(judged, lambda texts: text_vectors(model, texts, [0], "mean"))
    return {name: value for name, value in asdict(found).items() if name != "without"}


def name_of_pairs(pairs: Place) -> str:
    """What a file of judged pairs is called in the table."""
    return Path(pairs).name.partition(".")[0]
