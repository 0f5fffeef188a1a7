"""Sentence vectors beside people's judgements: Spearman's correlation of cosines with the scores of pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from materials import table
from numpy.typing import NDArray

from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.folder import read_folder
from heedful.inference.load import load_embedder, model_path
from heedful.tasks.label_metrics import spearman

Vectors = Callable[[Sequence[str]], NDArray[np.float32]]


def judged(model: Path, file: str, pooling: str | None = None) -> float:
    """Of a model folder's vectors, on a file of the data sets; with the folder's pooling unless another is named."""
    embedder = load_embedder(model, "cpu")
    return correlation(lambda texts: np.asarray(embedder.embed(texts, pooling=pooling)), file)


def correlation(vectors: Vectors, file: str) -> float:
    """Of any vectors."""
    rows = table(file)
    score = "score" if "score" in rows[0] else "relatedness"
    first, second = (unit(vectors([row[side] for row in rows])) for side in ("sentence1", "sentence2"))
    return round(spearman((first * second).sum(-1), np.array([float(row[score]) for row in rows])), 4)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors with length 1; one that is 0 stays so."""
    found: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    return found


def word_vectors(model: Path) -> Vectors:
    """The mean of the rows that a text's pieces have in the table of token embeddings."""
    folder = read_folder(model_path(model))
    tokenizer, rows = folder.require_tokenizer(), load_encoder(folder).token_matrix.detach().numpy()

    def mean(texts: Sequence[str]) -> NDArray[np.float32]:
        encoded = tokenizer.encode_batch(list(texts), None, offsets=False)
        return np.stack([rows[list(one.ids)[1:-1]].mean(0) for one in encoded])  # without [CLS] and [SEP]

    return mean


def random_model(model: Path, seed: int, output: Path) -> Path:
    """A folder of the same shape and vocabulary that has learned nothing."""
    folder = read_folder(model_path(model))
    encoder = folder.model_config.build()
    folder.family.initialise(encoder, folder.model_config, seed)
    save_model(encoder, output, folder.require_tokenizer(), overwrite=True)
    return output
