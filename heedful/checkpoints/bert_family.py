"""BERT as a family: its config.json, its frame, its heads, what it is pretrained on, and what others share of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful.checkpoints.bert_names import BERT_NAMES
from heedful.checkpoints.config_json import ConfigFormat
from heedful.checkpoints.family import Family, between_cls_and_sep
from heedful.models.bert import BertConfig, BertForPretraining, initialise, sized
from heedful.models.bert_layers import MlmHead
from heedful.models.informed_start import InformedStart, look_at_neighbours

# Keys that would change what a model built as BERT computes, and the one value of each that is computed here.
ENCODER_ONLY: Mapping[str, Any] = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "pruned_heads": {},
}
PER_PIECE = ("encoder.embeddings.token.weight", "mlm.bias")


def hugging_face_classes(prefix: str, pretraining: str = "MaskedLM") -> dict[str, str]:
    """Hugging Face's classes of a family by what they are for."""
    heads = ("SequenceClassification", "TokenClassification", "QuestionAnswering", "MultipleChoice", "MaskedLM")
    named = {head: f"{prefix}For{head}" for head in heads}
    return {"Model": f"{prefix}Model", "PreTraining": f"{prefix}For{pretraining}", **named}


BERT = Family(
    config=ConfigFormat(
        BertConfig,
        "BERT",
        only_values=ENCODER_ONLY,
        bookkeeping=(
            *("directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"),
            *("pooler_size_per_head", "pooler_type"),
        ),
    ),
    initialise=initialise,
    names=BERT_NAMES,
    check_frame=between_cls_and_sep,
    classes=hugging_face_classes("Bert", "PreTraining"),
    class_prefix="Bert",
    sized=sized,
    pretraining=BertForPretraining,
    objectives=("mlm",),
    masked_lm=MlmHead,
    parts={"encoder.pooler": "pooler", "mlm": "MLM head", "nsp": "NSP head"},
    informed=InformedStart(bias="mlm.bias", neighbours=look_at_neighbours),
    per_piece=PER_PIECE,
)
