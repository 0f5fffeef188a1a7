"""Vectors of sentences from raw lines alone, without training: the mean over a low layer's states, whitened.

    whiten("run/model", lines, "vectors")

The model is kept up to a layer, and the map stands behind its pooling as a Dense module, so that the folder is one of
sentence-transformers. Above the embeddings a masked language model's states say more and more of what stands in a
place and less of what the text is about; on STS-B the embeddings alone did best (docs/results.md).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heedful.atomic import atomic_file
from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.folder import ModelFolder, read_folder
from heedful.checkpoints.sentence_dense import read_dense, write_dense
from heedful.checkpoints.sentence_transformers import POOLINGS, SentenceSettings
from heedful.errors import HeedfulError
from heedful.inference.bars import Bar, no_bar
from heedful.inference.load import load_embedder, model_path
from heedful.models.bert_layers import BertShape
from heedful.models.encoder import Encoder
from heedful.nn.whitening import whitening

AT_ONCE = 1024  # texts
USE = """
## Use

    heedful similarity FOLDER TEXT TEXT
    heedful search index --model FOLDER --add lines.txt
"""
LEAST_SPREAD = 1e-12  # a variance below this is rounding
# The embeddings' tables that tell nothing of what a text says; their mean depends on its length alone.
PLACES = ("embeddings.position.weight", "embeddings.segment.weight")


@dataclass(frozen=True)
class Whitened:
    """What was written."""

    path: Path
    lines: int
    layer: int
    width: int
    kept: float  # the share of the variance before that lies in the directions kept

    @property
    def told(self) -> str:
        """What the vectors are, in words."""
        states = f"layer {self.layer}" if self.layer else "the embeddings"
        return f"{self.width} numbers from {states}, over {self.lines:,} lines"


def whiten(
    model: str | Path,
    lines: Iterable[str],
    output: str | Path,
    *,
    layer: int = 0,
    width: int | None = None,
    pooling: str = "mean",
    overwrite: bool = False,
    force: bool = False,
    bar: Bar = no_bar,
) -> Whitened:
    """Write a folder of sentence vectors: `model` up to `layer` (0: its embeddings), whitened over `lines`.

    layer      counted from 1; 0 are the embeddings, whose positions are left out, and -1 is the last layer
    width      of the vectors, at most that of the model, which is the default
    overwrite  replace a model that is there
    """
    if pooling not in POOLINGS:
        raise HeedfulError(f"there is no pooling {pooling!r}", remedy=f"choose one of {', '.join(POOLINGS)}")
    if width is not None and width < 1:
        raise HeedfulError(f"vectors of {width} numbers", remedy="give a width above zero")
    source = read_folder(model_path(model), force)
    lower = up_to(source, load_encoder(source), layer)
    told = SentenceSettings(pooling)
    with tempfile.TemporaryDirectory() as scratch:
        before = Path(scratch) / "model"
        save_model(lower, before, source.require_tokenizer(), sentence=told, max_length=source.max_length)
        made = whitening(_vectors(before, lines, lower.config.width, bar), width)
        if made.spread < LEAST_SPREAD:
            raise HeedfulError("all lines have the same vector", remedy="give different texts")
        write_dense(Path(scratch) / "dense", made.layer)
        settings = replace(told, dense=(read_dense(Path(scratch) / "dense"),))
        limit = source.max_length
        save_model(lower, output, source.tokenizer, sentence=settings, max_length=limit, overwrite=overwrite)
    written = Whitened(Path(output), made.vectors, lower.config.layers, made.layer.out_features, made.kept)
    _write_card(written, source.path, pooling)
    return written


def up_to(folder: ModelFolder, encoder: Encoder, layer: int) -> Encoder:
    """The encoder without the layers above this one; without any, it has no positions either."""
    config = encoder.config
    if not isinstance(config, BertShape):
        what = f"a model of the type {folder.model_type} cannot be cut above a layer"
        raise HeedfulError(what, where=folder.path, remedy="use a BERT or one of its relatives")
    lower = replace(config, num_hidden_layers=encoder.layer_number(layer)).build().without_pooler()
    states = encoder.state_dict()
    lower.load_state_dict({name: states[name] for name in lower.state_dict()})
    if not lower.config.layers:
        tables = dict(lower.named_parameters())
        with torch.no_grad():
            for name in PLACES:
                if name in tables:
                    tables[name].zero_()
    return lower.eval()


def _write_card(made: Whitened, source: Path, pooling: str) -> None:
    """Write README.md into the model folder."""
    lines = [
        f"# Sentence vectors whitened with heedful: those of `{source.name}`",
        "",
        f"- {made.told}; pooling {pooling}",
        f"- {made.kept:.1%} of the variance lies in the directions kept",
    ]
    with atomic_file(made.path / "README.md") as file:
        file.write("\n".join(lines) + "\n" + USE)


def _vectors(model: Path, lines: Iterable[str], width: int, bar: Bar) -> Iterator[Tensor]:
    """The vectors of all lines that have anything in them, block by block; too few of them are refused."""
    texts = (line for line in lines if line.strip())
    count = len(lines) if isinstance(lines, Sequence) else None
    vectors, done = load_embedder(model, "cpu").embed_stream(texts), 0
    with bar("whitening", count, "lines") as advance:
        while block := list(islice(vectors, AT_ONCE)):
            done += len(block)
            advance(done, done)
            yield torch.from_numpy(np.stack(block))
    if done <= width:
        what = f"{done:,} lines with text are too few to tell how vectors of {width} numbers differ"
        raise HeedfulError(what, remedy=f"give more than {width}, best some thousands")
