"""The static word matrix: the token embeddings of a model, before any context, as files other programs read.

A model that reads words by their characters has no such matrix: its words are those it says, in words.txt, and their
vectors what it makes of each before any context.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from heedful.atomic import atomic_file
from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.vector_files import Matrix, NamedVectors, write_vectors
from heedful.data.corpus.word_windows import BEGIN_WORD, END_WORD
from heedful.data.corpus.word_windows import UNKNOWN as UNKNOWN_WORD
from heedful.inference.embedder import Embedder
from heedful.models.word2vec import Word2VecConfig
from heedful.tasks.bilm import read_words
from heedful.text.word_tokenizer import UNKNOWN, word_tokenizer


def static_files(path: str | Path) -> list[Path]:
    """The files that are written under this name: the matrix, and for .npy the pieces."""
    target = Path(path)
    return [target, target.with_suffix(".vocab.txt")] if target.suffix == ".npy" else [target]


def static_vectors(model: Embedder) -> NamedVectors:
    """The pieces of a model, or its words, and their vectors; an id without a piece has a name of its own."""
    if reads_characters(model):
        words = [word for word in read_words(model.folder) if word not in (UNKNOWN_WORD, BEGIN_WORD, END_WORD)]
        return NamedVectors(words, vectors_by_characters(model, words))
    pieces = model.tokenizer.vocabulary
    matrix: Matrix = model.encoder.token_matrix.detach().cpu().numpy()[: len(pieces)]
    return NamedVectors([piece or f"[unused{number}]" for number, piece in enumerate(pieces)], matrix)


def reads_characters(model: Embedder) -> bool:
    """Whether a model's tokens are no more than characters, so that their vectors say nothing of words."""
    return model.folder.family.two_way_lm is not None


def vectors_by_characters(model: Embedder, words: Sequence[str]) -> Matrix:
    """What a model that reads characters makes of words before any context: its layer 0."""
    return np.stack([parts.mean(0) for parts in model.embed(words, layers=[0], unit="word")])


def write_static_vectors(model: Embedder, path: str | Path) -> tuple[int, int]:
    """Write the matrix as .npy (pieces beside it in .vocab.txt), or as word2vec text or binary; gives its shape."""
    return write_named_vectors(static_vectors(model), path)


def write_named_vectors(vectors: NamedVectors, path: str | Path) -> tuple[int, int]:
    """Write words and their vectors in the format that the name asks for."""
    target = Path(path)
    if target.suffix != ".npy":
        there = np.abs(vectors.matrix).max(axis=1) > 0  # the row of [UNK] in a model of whole words is no word's
        named = [word for word, one in zip(vectors.words, there, strict=True) if one]
        write_vectors(target, named, vectors.matrix[there])
        return len(named), vectors.matrix.shape[1]
    with atomic_file(target, "wb") as file:
        np.save(file, vectors.matrix)
    with atomic_file(target.with_suffix(".vocab.txt")) as file:
        file.writelines(f"{word}\n" for word in vectors.words)
    return len(vectors.matrix), vectors.matrix.shape[1]


def save_as_model(vectors: NamedVectors, path: str | Path, overwrite: bool = False) -> None:
    """Write a model folder of the type word2vec that has these vectors."""
    words, matrix = vectors
    if UNKNOWN not in words:
        words, matrix = [UNKNOWN, *words], np.concatenate([np.zeros((1, matrix.shape[1]), np.float32), matrix])
    encoder = Word2VecConfig(len(words), matrix.shape[1]).build()
    with torch.no_grad():
        encoder.token_matrix.copy_(torch.from_numpy(matrix))
    lowercase = all(word == word.lower() for word in words if word != UNKNOWN)
    save_model(encoder, path, word_tokenizer(words, lowercase), overwrite=overwrite)
