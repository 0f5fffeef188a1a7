"""GPT-2 as a family: its config.json, its names, its head and what it is pretrained on."""

from __future__ import annotations

import re

from heedful.checkpoints.config_json import CLASSIFIER, ConfigFormat
from heedful.checkpoints.family import Family
from heedful.checkpoints.names import NameTable
from heedful.models.gpt import GptConfig, GptForPretraining, initialise, sized
from heedful.models.informed_start import InformedStart

_LAYER = "transformer.h.{i}"


def _respell(name: str) -> str:
    """A bare encoder leaves out `transformer.`."""
    return f"transformer.{name}" if name.startswith(("wte.", "wpe.", "h.", "ln_f.")) else name


GPT_NAMES = NameTable(
    modules={
        "encoder.embeddings.token": ("transformer.wte",),
        "encoder.embeddings.position": ("transformer.wpe",),
        "encoder.layers.{i}.attention_norm": (f"{_LAYER}.ln_1",),
        "encoder.layers.{i}.attention.qkv": (f"{_LAYER}.attn.c_attn",),
        "encoder.layers.{i}.attention.out": (f"{_LAYER}.attn.c_proj",),
        "encoder.layers.{i}.feed_norm": (f"{_LAYER}.ln_2",),
        "encoder.layers.{i}.up": (f"{_LAYER}.mlp.c_fc",),
        "encoder.layers.{i}.down": (f"{_LAYER}.mlp.c_proj",),
        "encoder.norm": ("transformer.ln_f",),
        "classifier": ("classifier",),
        "span": ("qa_outputs",),
    },
    branches={"lstm": "tagger.lstm", "crf": "tagger.crf", "head": "head"},
    optional=("classifier", "span", "lstm", "crf", "head"),
    copies={"lm_head.weight": "transformer.wte.weight"},
    respell=_respell,
    # What Hugging Face calls Conv1D keeps its matrix as (inputs, outputs).
    transposed=frozenset(f"encoder.layers.{{i}}.{name}" for name in ("attention.qkv", "attention.out", "up", "down")),
    constants=re.compile(r"transformer\.h\.\d+\.attn\.(masked_)?bias"),
    layers=re.compile(r"transformer\.h\.(\d+)\."),
    left_out="transformer.",
    in_classes={CLASSIFIER: {"classifier": "score"}},
)

GPT = Family(
    config=ConfigFormat(
        GptConfig,
        "GPT",
        only_values={
            "scale_attn_weights": True,
            "scale_attn_by_inverse_layer_idx": False,
            "reorder_and_upcast_attn": False,
            "add_cross_attention": False,
            "is_encoder_decoder": False,
            "tie_word_embeddings": True,
            "pruned_heads": {},
        },
        bookkeeping=(
            *("n_ctx", "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type"),
            *("summary_use_proj", "task_specific_params", "pad_token_id", "is_decoder", "unk_token_id"),
        ),
    ),
    initialise=initialise,
    names=GPT_NAMES,
    classes={
        "Model": "GPT2Model",
        "PreTraining": "GPT2LMHeadModel",
        CLASSIFIER: "GPT2ForSequenceClassification",
        "TokenClassification": "GPT2ForTokenClassification",
        "QuestionAnswering": "GPT2ForQuestionAnswering",
    },
    aliases=("gpt",),
    class_prefix="GPT2",
    sized=sized,
    pretraining=GptForPretraining,
    informed=InformedStart(),
    objectives=("causal",),
    language_model=GptForPretraining,
    pooling="last",
    per_piece=("encoder.embeddings.token.weight",),
)
