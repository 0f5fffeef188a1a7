"""ModernBERT as a family."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.checkpoints.bert_family import ENCODER_ONLY, PER_PIECE, hugging_face_classes
from heedful.checkpoints.bert_names import OPTIONAL, in_full
from heedful.checkpoints.config_json import ConfigFormat
from heedful.checkpoints.family import Family, between_cls_and_sep
from heedful.checkpoints.names import NameTable
from heedful.errors import HeedfulError
from heedful.models.bert import BertConfig, initialise, sized_as
from heedful.models.modernbert import ModernBertConfig, ModernBertMlm, masked_lm

_REMEDY = "use a ModernBERT whose layers alternate regularly, with plain rotary positions"
_THETAS = {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"}


def older_words(values: Mapping[str, Any], where: Path) -> dict[str, Any]:
    """A config.json with the fields that it had before Hugging Face wrote `layer_types` and `rope_parameters`."""
    read = dict(values)
    kinds = values.get("layer_types")
    if kinds is not None:
        read["global_attn_every_n_layers"] = _every(kinds, where)
    rotary = values.get("rope_parameters") or {}
    for kind, field in _THETAS.items():
        settings = rotary.get(kind) or {}
        if settings.get("rope_type", "default") != "default":
            raise HeedfulError(f"rope_type is {settings['rope_type']!r}", where=where, remedy=_REMEDY)
        read[field] = float(settings.get("rope_theta", values.get(field, getattr(ModernBertConfig, field))))
    return read


def _every(kinds: Any, where: Path) -> int:
    """The n for which every n-th of these layers, the first included, looks at all of a text."""
    if isinstance(kinds, list) and kinds:
        for every in range(1, len(kinds) + 1):
            if kinds == ["sliding_attention" if i % every else "full_attention" for i in range(len(kinds))]:
                return every
    raise HeedfulError(f"layer_types is {kinds!r}, which is not supported", where=where, remedy=_REMEDY)


def sized(size: str, vocab_size: int) -> ModernBertConfig:
    """The config with the layers, width and heads of a BERT of this size."""
    bert = sized_as(BertConfig, size, vocab_size)
    return ModernBertConfig(
        vocab_size=vocab_size,
        hidden_size=bert.hidden_size,
        num_hidden_layers=bert.num_hidden_layers,
        num_attention_heads=bert.num_attention_heads,
        intermediate_size=bert.hidden_size * 3 // 2,
        pad_token_id=0,
    )


_LAYER = "model.layers.{i}"
MODERNBERT = Family(
    config=ConfigFormat(
        ModernBertConfig,
        "ModernBERT",
        only_values={**ENCODER_ONLY, "decoder_bias": True, "rope_scaling": None},
        bookkeeping=(
            *("initializer_cutoff_factor", "deterministic_flash_attn", "sparse_prediction", "layer_types"),
            *("sparse_pred_ignore_index", "rope_parameters", "reference_compile", "repad_logits_with_grad"),
            "layer_norm_eps",
        ),
        translate=older_words,
    ),
    initialise=initialise,
    names=NameTable(
        modules={
            "encoder.embeddings.token": ("model.embeddings.tok_embeddings",),
            "encoder.embeddings.norm": ("model.embeddings.norm",),
            "encoder.layers.{i}.attention_norm": (f"{_LAYER}.attn_norm",),
            "encoder.layers.{i}.attention.qkv": (f"{_LAYER}.attn.Wqkv",),
            "encoder.layers.{i}.attention.out": (f"{_LAYER}.attn.Wo",),
            "encoder.layers.{i}.inner_norm": (f"{_LAYER}.mlp_norm",),
            "encoder.layers.{i}.up": (f"{_LAYER}.mlp.Wi",),
            "encoder.layers.{i}.down": (f"{_LAYER}.mlp.Wo",),
            "encoder.norm": ("model.final_norm",),
            # One head stands before the tasks and before the vocabulary.
            "encoder.pooler.dense": ("head.dense",),
            "encoder.pooler.norm": ("head.norm",),
            "mlm.transform.dense": ("head.dense",),
            "mlm.transform.norm": ("head.norm",),
            "mlm": ("decoder",),
            "classifier": ("classifier",),
            "span": ("classifier",),
        },
        branches={"lstm": "tagger.lstm", "crf": "tagger.crf", "head": "own_head"},
        optional=OPTIONAL,
        copies={"decoder.weight": "model.embeddings.tok_embeddings.weight"},
        respell=in_full("model", "embeddings", "layers", "final_norm"),
        layers=re.compile(r"model\.layers\.(\d+)\."),
        left_out="model.",
    ),
    check_frame=between_cls_and_sep,
    classes=hugging_face_classes("ModernBert"),
    sized=sized,
    pretraining=masked_lm,
    objectives=("mlm",),
    masked_lm=ModernBertMlm,
    parts={"mlm": "MLM head"},
    per_piece=PER_PIECE,
)
