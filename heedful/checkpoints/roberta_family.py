"""RoBERTa and XLM-R as families: one table of names, two model types."""

from __future__ import annotations

from functools import partial

from heedful.checkpoints.bert_family import ENCODER_ONLY, PER_PIECE, hugging_face_classes
from heedful.checkpoints.bert_names import names_under
from heedful.checkpoints.config_json import CLASSIFIER, ConfigFormat
from heedful.checkpoints.family import Family, between_cls_and_sep
from heedful.models.bert import initialise, sized_as
from heedful.models.roberta import RobertaConfig, XlmRobertaConfig, masked_lm, mlm_head

ROBERTA_NAMES = names_under(
    "roberta",
    {
        "encoder.pooler": ("roberta.pooler.dense",),
        "mlm.dense": ("lm_head.dense",),
        "mlm.norm": ("lm_head.layer_norm",),
        "mlm": ("lm_head",),
    },
    copies={
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    in_classes={CLASSIFIER: {"roberta.pooler.dense": "classifier.dense", "classifier": "classifier.out_proj"}},
)


def _family(kind: type[RobertaConfig], name: str, prefix: str) -> Family[RobertaConfig]:
    return Family(
        config=ConfigFormat(kind, name, only_values=ENCODER_ONLY),
        initialise=initialise,
        names=ROBERTA_NAMES,
        check_frame=between_cls_and_sep,
        classes=hugging_face_classes(prefix),
        class_prefix=prefix,
        sized=partial(sized_as, kind, max_position_embeddings=514, layer_norm_eps=1e-5, type_vocab_size=1),
        pretraining=masked_lm,
        objectives=("mlm",),
        masked_lm=mlm_head,
        parts={"encoder.pooler": "pooler", "mlm": "MLM head"},
        per_piece=PER_PIECE,
    )


ROBERTA = _family(RobertaConfig, "RoBERTa", "Roberta")
XLM_ROBERTA = _family(XlmRobertaConfig, "XLM-R", "XLMRoberta")
