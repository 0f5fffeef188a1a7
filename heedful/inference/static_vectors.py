"""The static word matrix: the token embeddings of a model, before any context, as files other programs read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from heedful.atomic import atomic_file
from heedful.inference.embedder import Embedder


def static_files(path: str | Path) -> list[Path]:
    """The files that are written under this name: the matrix, and for .npy the pieces."""
    target = Path(path)
    return [target, target.with_suffix(".vocab.txt")] if target.suffix == ".npy" else [target]


def write_static_vectors(model: Embedder, path: str | Path) -> tuple[int, int]:
    """Write the matrix as .npy (pieces beside it in .vocab.txt), or as word2vec text; gives its shape."""
    target = Path(path)
    pieces = model.tokenizer.vocabulary
    matrix = model.encoder.token_matrix.detach().cpu().numpy()[: len(pieces)]
    if target.suffix == ".npy":
        with atomic_file(target, "wb") as file:
            np.save(file, matrix)
        with atomic_file(target.with_suffix(".vocab.txt")) as file:
            file.writelines(f"{piece}\n" for piece in pieces)
    else:
        with atomic_file(target) as file:
            file.write(f"{len(matrix)} {matrix.shape[1]}\n")
            for number, (piece, row) in enumerate(zip(pieces, matrix, strict=True)):
                # word2vec separates by spaces, so a piece may hold none, nor be empty.
                word = piece.replace(" ", "\u00a0") or f"[unused{number}]"
                file.write(f"{word} {' '.join(f'{x:.6g}' for x in row.tolist())}\n")
    return len(matrix), matrix.shape[1]
