"""Token vectors as lines of JSON, in the layout of Google's extract_features."""

from __future__ import annotations

import json
from collections.abc import Iterator

from heedful.inference.embedder import Chunk, Embedder
from heedful.inference.features import Features


def extract_features_lines(chunk: Chunk, first: int, model: Embedder, wanted: Features) -> Iterator[str]:
    """A chunk's token vectors in the layout of Google's extract_features: every token with the values of each layer."""
    vocabulary = model.tokenizer.vocabulary
    for number, (pieces, vectors) in enumerate(zip(chunk.pieces, chunk.vectors, strict=True), start=first):
        by_layer = vectors.reshape(len(vectors), len(wanted.layers), -1).astype(float).round(6).tolist()
        features = [
            {
                "token": vocabulary[piece],
                "layers": [{"index": i, "values": v} for i, v in zip(wanted.layers, values, strict=True)],
            }
            for piece, values in zip(pieces.ids, by_layer, strict=True)
        ]
        yield json.dumps({"linex_index": number, "features": features}, ensure_ascii=False) + "\n"
