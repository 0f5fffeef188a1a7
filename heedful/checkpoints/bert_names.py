"""BERT's names: ours beside Hugging Face's; and those of the models whose layers are named as BERT's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from heedful.checkpoints.names import NameTable

# Parts that a task puts on an encoder and that only we have.
OWN_BRANCHES: Mapping[str, str] = {"lstm": "tagger.lstm", "crf": "tagger.crf", "head": "head"}
OPTIONAL = ("encoder.pooler", "mlm", "nsp", "classifier", "span", "lstm", "crf", "head")
TASK_MODULES: Mapping[str, tuple[str, ...]] = {"classifier": ("classifier",), "span": ("qa_outputs",)}


def in_full(prefix: str, *roots: str) -> Callable[[str], str]:
    """The spelling of names that a bare encoder or an old program leaves short.

    Old files call a norm's weight and bias gamma and beta; a bare encoder leaves out `bert.` before its `roots`.
    """
    beginnings = tuple(f"{root}." for root in roots)

    def respell(name: str) -> str:
        if name.endswith(("LayerNorm.gamma", "LayerNorm.beta")):
            name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        return f"{prefix}.{name}" if name.startswith(beginnings) else name

    return respell


def encoder_modules(prefix: str) -> dict[str, tuple[str, ...]]:
    """Embeddings and layers as in BERT, under another first word."""
    layer = f"{prefix}.encoder.layer.{{i}}"
    qkv = tuple(f"{layer}.attention.self.{name}" for name in ("query", "key", "value"))
    return {
        "encoder.embeddings.token": (f"{prefix}.embeddings.word_embeddings",),
        "encoder.embeddings.segment": (f"{prefix}.embeddings.token_type_embeddings",),
        "encoder.embeddings.position": (f"{prefix}.embeddings.position_embeddings",),
        "encoder.embeddings.norm": (f"{prefix}.embeddings.LayerNorm",),
        "encoder.layers.{i}.attention.qkv": qkv,
        "encoder.layers.{i}.attention.out": (f"{layer}.attention.output.dense",),
        "encoder.layers.{i}.attention_norm": (f"{layer}.attention.output.LayerNorm",),
        "encoder.layers.{i}.up": (f"{layer}.intermediate.dense",),
        "encoder.layers.{i}.down": (f"{layer}.output.dense",),
        "encoder.layers.{i}.output_norm": (f"{layer}.output.LayerNorm",),
    }


def names_under(
    prefix: str,
    modules: Mapping[str, tuple[str, ...]],
    copies: Mapping[str, str],
    in_classes: Mapping[str, Mapping[str, str]] | None = None,
    roots: tuple[str, ...] = (),
) -> NameTable:
    """The table of a model whose layers are named as BERT's; `modules` are those beside embeddings and layers."""
    return NameTable(
        modules={**encoder_modules(prefix), **modules, **TASK_MODULES},
        branches=OWN_BRANCHES,
        optional=OPTIONAL,
        copies=copies,
        counters=(f"{prefix}.embeddings.position_ids",),
        respell=in_full(prefix, "embeddings", "encoder", "pooler", *roots),
        layers=re.compile(rf"{prefix}\.encoder\.layer\.(\d+)\."),
        left_out=f"{prefix}.",
        in_classes=in_classes or {},
    )


def bert_names(prefix: str) -> NameTable:
    """The table of BERT, or of a model with its heads under another first word."""
    return names_under(
        prefix,
        {
            "encoder.pooler": (f"{prefix}.pooler.dense",),
            "mlm.dense": ("cls.predictions.transform.dense",),
            "mlm.norm": ("cls.predictions.transform.LayerNorm",),
            "mlm": ("cls.predictions",),
            "nsp": ("cls.seq_relationship",),
        },
        copies={
            "cls.predictions.decoder.weight": f"{prefix}.embeddings.word_embeddings.weight",
            "cls.predictions.decoder.bias": "cls.predictions.bias",
        },
    )


BERT_NAMES = bert_names("bert")
