"""Sizes of models by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from heedful.errors import HeedfulError

S = TypeVar("S")
# Layers, width and heads of a Transformer: BERT's published sizes and a nano. A head is 64 wide, and the feed-forward
# four times the width.
TRANSFORMER_SIZES = {
    "nano": (2, 64, 1),
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}


def size_named(size: str, sizes: Mapping[str, S], kind: str) -> S:
    """The size of this name; a model of this kind that has none such is told those there are."""
    if size not in sizes:
        raise HeedfulError(f"no {kind} size is called {size!r}", remedy=f"choose one of {', '.join(sizes)}")
    return sizes[size]
