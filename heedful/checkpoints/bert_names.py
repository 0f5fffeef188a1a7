"""BERT's names: ours beside Hugging Face's."""

from __future__ import annotations

import re

from heedful.checkpoints.names import NameTable

_SELF = "bert.encoder.layer.{i}.attention.self"
_LAYER = "bert.encoder.layer.{i}"


def _respell(name: str) -> str:
    """Old files call a norm's weight and bias gamma and beta; a bare encoder leaves out `bert.`."""
    if name.endswith(("LayerNorm.gamma", "LayerNorm.beta")):
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    return f"bert.{name}" if name.startswith(("embeddings.", "encoder.", "pooler.")) else name


BERT_NAMES = NameTable(
    modules={
        "encoder.embeddings.token": ("bert.embeddings.word_embeddings",),
        "encoder.embeddings.segment": ("bert.embeddings.token_type_embeddings",),
        "encoder.embeddings.position": ("bert.embeddings.position_embeddings",),
        "encoder.embeddings.norm": ("bert.embeddings.LayerNorm",),
        "encoder.layers.{i}.attention.qkv": (f"{_SELF}.query", f"{_SELF}.key", f"{_SELF}.value"),
        "encoder.layers.{i}.attention.out": (f"{_LAYER}.attention.output.dense",),
        "encoder.layers.{i}.attention_norm": (f"{_LAYER}.attention.output.LayerNorm",),
        "encoder.layers.{i}.up": (f"{_LAYER}.intermediate.dense",),
        "encoder.layers.{i}.down": (f"{_LAYER}.output.dense",),
        "encoder.layers.{i}.output_norm": (f"{_LAYER}.output.LayerNorm",),
        "encoder.pooler": ("bert.pooler.dense",),
        "mlm.dense": ("cls.predictions.transform.dense",),
        "mlm.norm": ("cls.predictions.transform.LayerNorm",),
        "mlm": ("cls.predictions",),
        "nsp": ("cls.seq_relationship",),
        "classifier": ("classifier",),
        "span": ("qa_outputs",),
    },
    branches={"lstm": "tagger.lstm", "crf": "tagger.crf", "head": "head"},
    optional=("encoder.pooler", "mlm", "nsp", "classifier", "span", "lstm", "crf", "head"),
    copies={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    counters=("bert.embeddings.position_ids",),
    respell=_respell,
    layers=re.compile(r"bert\.encoder\.layer\.(\d+)\."),
    left_out="bert.",
)
