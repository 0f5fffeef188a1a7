"""XLNet's names: ours beside Hugging Face's."""

from __future__ import annotations

import re

from heedful.checkpoints.config_json import CLASSIFIER
from heedful.checkpoints.names import LEAVES, NameTable

_LAYER = "transformer.layer.{i}"


def _respell(name: str) -> str:
    """A bare encoder leaves out `transformer.`."""
    return f"transformer.{name}" if name.startswith(("word_embedding.", "mask_emb", "layer.")) else name


XLNET_NAMES = NameTable(
    modules={
        "encoder.embeddings": ("transformer",),
        "encoder.embeddings.token": ("transformer.word_embedding",),
        "encoder.layers.{i}.attention": (f"{_LAYER}.rel_attn",),
        "encoder.layers.{i}.attention_norm": (f"{_LAYER}.rel_attn.layer_norm",),
        "encoder.layers.{i}.up": (f"{_LAYER}.ff.layer_1",),
        "encoder.layers.{i}.down": (f"{_LAYER}.ff.layer_2",),
        "encoder.layers.{i}.output_norm": (f"{_LAYER}.ff.layer_norm",),
        "encoder.pooler": ("sequence_summary.summary",),
        "lm": ("lm_loss",),
        "classifier": ("classifier",),
        "span": ("qa_outputs",),
    },
    branches={"lstm": "tagger.lstm", "crf": "tagger.crf", "head": "head"},
    optional=("encoder.pooler", "lm", "classifier", "span", "lstm", "crf", "head"),
    copies={"lm_loss.weight": "transformer.word_embedding.weight"},
    respell=_respell,
    layers=re.compile(r"transformer\.layer\.(\d+)\."),
    left_out="transformer.",
    in_classes={kind: {"classifier": "logits_proj"} for kind in (CLASSIFIER, "MultipleChoice")},
    leaves=(*LEAVES, "mask_emb", *"qkvor", "r_w_bias", "r_r_bias", "r_s_bias", "seg_embed"),
)
