"""The three attentions of a Transformer: of the source to itself, of the translation to its past and to the source."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.checkpoints.translation_folder import TranslationFolder
from heedful.errors import HeedfulError
from heedful.inference.teacher_forced import EncodedSides
from heedful.models.transformer import Transformer
from heedful.text.piece_labels import piece_labels

Maps = NDArray[np.float32]


@dataclass(frozen=True)
class TransformerMaps:
    """What the pieces of a sentence and of its translation look at, in every layer and head."""

    source: list[str]
    given: list[str]  # what the decoder has read at each position: the start, and all pieces but the last
    written: list[str]  # what it writes there
    encoder: Maps  # (L, H, source, source)
    decoder: Maps  # (L, H, written, given)
    cross: Maps  # (L, H, written, source)


def has_maps(folder: TranslationFolder) -> bool:
    """Whether all three attentions of a model can be looked at: those of a Transformer with an encoder of its own."""
    return isinstance(folder.model, Transformer) and folder.model.config.encoder is None


def transformer_maps(folder: TranslationFolder, pairs: EncodedSides) -> list[TransformerMaps]:
    """The maps of each pair of a source and its translation, in order."""
    model = folder.model
    if not isinstance(model, Transformer):
        remedy = "look at its alignments: it has one attention, from the translation to the source"
        raise HeedfulError("this model is no Transformer", remedy=remedy)
    found = list[TransformerMaps]()
    for number in range(len(pairs.sources)):
        alone = EncodedSides([pairs.sources[number]], [pairs.targets[number]], [pairs.truncated[number]])
        ((_, bitext),) = alone.batches()
        with torch.inference_mode(), _noted(model) as (encoder, decoder, cross):
            model(bitext.to(str(model.device)))
        source = piece_labels(folder.sides.source, pairs.sources[number])
        given, written = pairs.targets[number][:-1], pairs.targets[number][1:]
        labels = (piece_labels(folder.sides.target, given), piece_labels(folder.sides.target, written))
        found.append(TransformerMaps(source, *labels, *map(_stacked, (encoder, decoder, cross))))
    return found


@contextmanager
def _noted(model: Transformer) -> Iterator[tuple[list[Tensor], list[Tensor], list[Tensor]]]:
    """Lists that get the weights of each layer while the model computes one pair."""
    encoder, decoder, cross = list[Tensor](), list[Tensor](), list[Tensor]()
    if model.config.encoder is not None:
        what = "the source is read by a pretrained encoder"
        raise HeedfulError(what, remedy="look at that encoder by itself, and at the alignments of this model")
    with ExitStack() as hooks:
        for layer in model.encoder.layers:  # type: ignore[union-attr]
            hooks.enter_context(_noting(layer.attention, encoder))
        for step in model.decoder:
            hooks.enter_context(_noting(step.attention, decoder))
            hooks.enter_context(_noting(step.cross, cross))
        yield encoder, decoder, cross


@contextmanager
def _noting(attention: nn.Module, found: list[Tensor]) -> Iterator[None]:
    """Whenever this attention is asked for its results in this thread, note its weights for the same input."""
    asking = threading.get_ident()

    def note(module: nn.Module, given: tuple[object, ...]) -> None:
        if threading.get_ident() != asking:  # somebody else translates with the same model
            return
        (weights,) = module.weights(*given)  # type: ignore[operator]
        found.append(weights)

    handle = attention.register_forward_pre_hook(note)
    try:
        yield
    finally:
        handle.remove()


def _stacked(layers: Sequence[Tensor]) -> Maps:
    return torch.stack(list(layers)).float().cpu().numpy()
