"""A Transformer in CTranslate2's format, written by CTranslate2's own classes.

The folder takes pieces without [CLS] and [SEP], which the engine puts around them itself. The tokenizers lie beside the
model, so that nothing else is needed to use it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.checkpoints.new_folder import new_folder
from heedful.checkpoints.translation_folder import TranslationFolder
from heedful.errors import HeedfulError
from heedful.models.transformer import Transformer
from heedful.nn.attention import MultiHeadSelfAttention
from heedful.nn.decoder_attention import DecoderSelfAttention, EncoderDecoderAttention
from heedful.nn.transformer_layers import DecoderLayer, Embeddings, EncoderLayer, FeedForward
from heedful.text.sides import Sides
from heedful.text.tokenizer import Tokenizer

QUANTIZATIONS = ("float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16", "int8_bfloat16")


def export_ctranslate2(
    folder: TranslationFolder, path: str | Path, quantization: str = "float32", overwrite: bool = False
) -> None:
    """Write a folder that `ctranslate2.Translator` reads, as a whole or not at all."""
    if quantization not in QUANTIZATIONS:
        what = f"no quantization is called {quantization!r}"
        raise HeedfulError(what, remedy=f"choose one of {', '.join(QUANTIZATIONS)}")
    spec = ctranslate2_spec(folder)
    spec.validate()
    spec.optimize(quantization=quantization)
    sides = folder.sides
    with new_folder(path, sides.target if sides.joint else None, sides.target.vocab_size, overwrite) as new:
        spec.save(str(new))
        if not sides.joint:
            sides.source.save(new / "source")
            sides.target.save(new / "target")


def ctranslate2_spec(folder: TranslationFolder) -> Any:
    """CTranslate2's description of the model, filled with its weights."""
    specs = ctranslate2_module().specs
    model = _transformer(folder)
    config = model.config
    spec = specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=config.pre_norm,
        activation=specs.Activation.RELU,
    )
    source = model.source or model.target
    _embed(spec.encoder.embeddings[0], spec.encoder.position_encodings, source)
    _embed(spec.decoder.embeddings, spec.decoder.position_encodings, model.target)
    spec.decoder.projection.weight = _numbers(model.target.token.weight)
    for stack in ("encoder", "decoder"):
        part, own = getattr(spec, stack), model.get_submodule(stack)
        for layer, weights in zip(part.layer, own.get_submodule("layers").children(), strict=True):
            _layer(layer, weights)
        if config.pre_norm:
            _norm(part.layer_norm, own.get_submodule("norm"))
    _describe(spec, folder.sides, config.layer_norm_eps, (config.source_vocab_size, config.target_vocab_size))
    return spec


def ctranslate2_module() -> Any:
    """The library, or a word about how to get it."""
    try:
        import ctranslate2
    except ImportError as error:
        remedy = "pip install 'heedful[ctranslate2]'"
        raise HeedfulError("ctranslate2 is not installed", remedy=remedy) from error
    return ctranslate2


def ctranslate2_vocabulary(tokenizer: Tokenizer, rows: int) -> list[str]:
    """A different piece for each row of a table: the tokenizer's, and stand-ins where it has none."""
    pieces = tokenizer.vocabulary + [""] * (rows - tokenizer.vocab_size)
    return [piece or f"[unused{number}]" for number, piece in enumerate(pieces)]


def _transformer(folder: TranslationFolder) -> Transformer:
    if not isinstance(folder.model, Transformer) or folder.model.config.encoder is not None:
        kind = "a recurrent model" if not isinstance(folder.model, Transformer) else "a BERT as its encoder"
        what = f"CTranslate2 has no place for {kind}"
        raise HeedfulError(what, where=folder.path, remedy="export a Transformer with an encoder of its own")
    return folder.model


def _describe(spec: Any, sides: Sides, eps: float, rows: tuple[int, int]) -> None:
    named = sides.target.special_tokens
    if any(sides.source.special_tokens[role] != named[role] for role in ("unk", "cls", "sep")):
        what = "source and target have different special tokens, and CTranslate2 has one name for both"
        raise HeedfulError(what, remedy="train with tokenizers that call them alike")
    spec.register_source_vocabulary(ctranslate2_vocabulary(sides.source, rows[0]))
    spec.register_target_vocabulary(ctranslate2_vocabulary(sides.target, rows[1]))
    spec.config.unk_token = named["unk"]
    spec.config.bos_token = spec.config.decoder_start_token = named["cls"]
    spec.config.eos_token = named["sep"]
    spec.config.add_source_bos = spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = eps


def _embed(spec: Any, positions: Any, embeddings: Embeddings) -> None:
    spec.weight = _numbers(embeddings.token.weight)
    positions.encodings = _numbers(embeddings.position.table)


def _layer(spec: Any, layer: nn.Module) -> None:
    assert isinstance(layer, EncoderLayer | DecoderLayer)
    _attention(spec.self_attention, layer.attention)
    _norm(spec.self_attention.layer_norm, layer.attention_residual.norm)
    if isinstance(layer, DecoderLayer):
        _attention(spec.attention, layer.cross)
        _norm(spec.attention.layer_norm, layer.cross_residual.norm)
    _feed_forward(spec.ffn, layer.feed_forward)
    _norm(spec.ffn.layer_norm, layer.feed_forward_residual.norm)


def _attention(spec: Any, attention: MultiHeadSelfAttention | DecoderSelfAttention | EncoderDecoderAttention) -> None:
    """Queries, keys and values as one product for a sequence on itself; keys and values as one for the memory."""
    if isinstance(attention, EncoderDecoderAttention):
        products = [attention.query, attention.memory, attention.out]
    else:
        products = [attention.qkv, attention.out]
    for place, product in zip(spec.linear, products, strict=True):
        _linear(place, product)


def _feed_forward(spec: Any, feed_forward: FeedForward) -> None:
    _linear(spec.linear_0, feed_forward.up)
    _linear(spec.linear_1, feed_forward.down)


def _linear(spec: Any, linear: nn.Linear) -> None:
    spec.weight, spec.bias = _numbers(linear.weight), _numbers(linear.bias)


def _norm(spec: Any, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm)
    spec.gamma, spec.beta = _numbers(norm.weight), _numbers(norm.bias)


def _numbers(tensor: Tensor) -> NDArray[np.float32]:
    return np.ascontiguousarray(tensor.detach().cpu().float().numpy())
