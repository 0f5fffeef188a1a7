"""Attention as one page that needs no network: all heads at a glance, one head's lines and matrix, and what else
shows how a model sees a text: how alike its positions are, and a token's nearest neighbours from layer to layer.

Weights are kept as bytes, 255 for 1; the page's only script is known to its policy by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.atomic import atomic_file
from heedful.views.markup import markup
from heedful.views.style import STYLE

Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class AttentionPicture:
    """One kind of attention: who looks, at what, and how much, by layer and head."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    weights: Numbers  # (L, H, rows, columns)


@dataclass(frozen=True)
class Neighbours:
    """The tokens of some texts, and to each in every layer the nearest others with their cosines."""

    tokens: Sequence[str]
    texts: Sequence[int]  # the text that each belongs to
    nearest: Sequence[Sequence[Sequence[tuple[int, float]]]]  # layer, token, rank -> which, cosine


def write_attention_page(
    path: str | Path,
    name: str,
    pictures: Sequence[AttentionPicture],
    neighbours: Neighbours | None = None,
    positions: Numbers | None = None,
) -> None:
    """Write the page, whole or not at all."""
    with atomic_file(path) as file:
        file.write(attention_page(name, pictures, neighbours, positions))


def attention_page(
    name: str,
    pictures: Sequence[AttentionPicture],
    neighbours: Neighbours | None = None,
    positions: Numbers | None = None,
) -> str:
    """The page as HTML; `positions` are the cosines of position vectors."""
    data = {
        "pictures": [_picture(one) for one in pictures],
        "neighbours": None if neighbours is None else vars(neighbours),
        "positions": None
        if positions is None
        else {"size": len(positions), "bytes": _bytes((positions + np.float32(1)) / np.float32(2))},
    }
    script = resources.files("heedful.views").joinpath("attention_page.js").read_text(encoding="utf-8")
    style = STYLE + resources.files("heedful.views").joinpath("attention_page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    # `<` is written otherwise, so that no text can end the element it stands in.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{markup(name)} · attention</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header><h1><small>Attention</small>{markup(name)}</h1></header>\n<main></main>\n"
        f'<script type="application/json" id="data">{_safe(text)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _picture(one: AttentionPicture) -> dict[str, object]:
    layers, heads = one.weights.shape[:2]
    shape = {"title": one.title, "rows": list(one.rows), "columns": list(one.columns), "layers": layers, "heads": heads}
    return {**shape, "bytes": _bytes(one.weights)}


def _bytes(shares: Numbers) -> str:
    return base64.b64encode(np.clip(np.rint(shares * 255), 0, 255).astype(np.uint8).tobytes()).decode()


def _safe(text: str) -> str:
    """Half a surrogate pair, which UTF-8 cannot hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")
