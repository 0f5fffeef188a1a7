"""The Marian architecture of `transformers` with the shape, and if wanted the very weights, of our Transformer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers import MarianConfig, MarianMTModel

from heedful.checkpoints.translation_folder import TranslationFolder
from heedful.models.transformer import Transformer, TransformerConfig
from heedful.nn.transformer_layers import DecoderLayer, EncoderLayer
from heedful.schema import Bitext
from heedful.text.sides import Symbols

PAD = 0


def transformer_in(folder: TranslationFolder) -> Transformer:
    """The model of a folder, which must be a Transformer."""
    if not isinstance(folder.model, Transformer):
        sys.exit("Marian is a Transformer: compare such a model")
    return folder.model


def marian_of(config: TransformerConfig, symbols: Symbols) -> MarianMTModel:
    """A Marian model of the same shape with weights of its own."""
    if config.pre_norm or config.positions != "sinusoidal" or config.encoder is not None:
        sys.exit("Marian is post-norm with sinusoidal positions and its own encoder: compare such a model")
    return MarianMTModel(
        MarianConfig(
            vocab_size=config.source_vocab_size,
            decoder_vocab_size=config.target_vocab_size,
            share_encoder_decoder_embeddings=config.share,
            d_model=config.width,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_attention_heads=config.heads,
            decoder_attention_heads=config.heads,
            encoder_ffn_dim=config.inner,
            decoder_ffn_dim=config.inner,
            activation_function="relu",
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            activation_dropout=0.0,
            max_position_embeddings=config.max_length,
            scale_embedding=True,
            pad_token_id=PAD,
            bos_token_id=symbols.start,
            eos_token_id=symbols.end,
            decoder_start_token_id=symbols.start,
            forced_eos_token_id=None,
        )
    )


def with_weights(theirs: MarianMTModel, ours: Transformer) -> MarianMTModel:
    """The same function as ours, to be evaluated."""
    source = ours.source or ours.target
    encoder, decoder = theirs.model.encoder, theirs.model.decoder
    with torch.no_grad():
        encoder.embed_tokens.weight.copy_(source.token.weight)
        decoder.embed_tokens.weight.copy_(ours.target.token.weight)
        theirs.lm_head.weight.copy_(ours.target.token.weight)
        theirs.final_logits_bias.zero_()
        for stack, embeddings in ((encoder, source), (decoder, ours.target)):
            stack.embed_positions.weight.copy_(embeddings.position.table)
        for name in ("encoder", "decoder"):
            own = ours.get_submodule(f"{name}.layers").children()
            for layer, weights in zip(getattr(theirs.model, name).layers, own, strict=True):
                _copy_layer(layer, weights)
    return theirs.eval()


def padded(bitext: Bitext) -> dict[str, torch.Tensor]:
    """The arguments of MarianMTModel for a batch, and its labels, -100 where there is none."""
    source = _block(bitext.source.ids, bitext.source.lengths, PAD)
    return {
        "input_ids": source,
        "attention_mask": _block(torch.ones_like(bitext.source.ids), bitext.source.lengths, 0),
        "decoder_input_ids": _block(bitext.target.ids, bitext.target.lengths, PAD),
        "labels": _block(bitext.labels, bitext.target.lengths, -100),
    }


def _block(flat: torch.Tensor, lengths: tuple[int, ...], value: int) -> torch.Tensor:
    return pad_sequence(list(torch.split(flat, list(lengths))), batch_first=True, padding_value=value)


def _copy_layer(theirs: Any, ours: nn.Module) -> None:
    assert isinstance(ours, EncoderLayer | DecoderLayer)
    _copy_attention(theirs.self_attn, [ours.attention.qkv], ours.attention.out)
    theirs.self_attn_layer_norm.load_state_dict(ours.attention_residual.norm.state_dict())
    if isinstance(ours, DecoderLayer):
        _copy_attention(theirs.encoder_attn, [ours.cross.query, ours.cross.memory], ours.cross.out)
        theirs.encoder_attn_layer_norm.load_state_dict(ours.cross_residual.norm.state_dict())
    theirs.fc1.load_state_dict(ours.feed_forward.up.state_dict())
    theirs.fc2.load_state_dict(ours.feed_forward.down.state_dict())
    theirs.final_layer_norm.load_state_dict(ours.feed_forward_residual.norm.state_dict())


def _copy_attention(theirs: Any, ours: Sequence[nn.Linear], out: nn.Linear) -> None:
    """Ours makes queries, keys and values by fewer products than three."""
    weights = torch.cat([product.weight for product in ours]).chunk(3)
    biases = torch.cat([product.bias for product in ours]).chunk(3)
    for place, weight, bias in zip((theirs.q_proj, theirs.k_proj, theirs.v_proj), weights, biases, strict=True):
        place.weight.copy_(weight)
        place.bias.copy_(bias)
    theirs.out_proj.load_state_dict(out.state_dict())
