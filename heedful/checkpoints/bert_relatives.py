"""ERNIE, ELECTRA, ALBERT, MPNet and DistilBERT as families: built of BERT's parts, with names of their own."""

from __future__ import annotations

import re
from functools import partial

from heedful.checkpoints.bert_family import ENCODER_ONLY, PER_PIECE, hugging_face_classes
from heedful.checkpoints.bert_names import OPTIONAL, OWN_BRANCHES, TASK_MODULES, bert_names, in_full, names_under
from heedful.checkpoints.config_json import CLASSIFIER, ConfigFormat
from heedful.checkpoints.family import Family, between_cls_and_sep
from heedful.checkpoints.names import NameTable
from heedful.models import distilbert, electra, mpnet
from heedful.models.albert import AlbertConfig
from heedful.models.bert import BertForPretraining, initialise, sized_as
from heedful.models.bert_layers import MlmHead
from heedful.models.distilbert import DistilBertConfig
from heedful.models.electra import ElectraConfig
from heedful.models.ernie import ErnieConfig
from heedful.models.mpnet import BUCKETS, MPNetConfig

_POOLED = {"encoder.pooler": "pooler", "mlm": "MLM head"}

_ERNIE = bert_names("ernie")
ERNIE = Family(
    config=ConfigFormat(ErnieConfig, "ERNIE", only_values=ENCODER_ONLY),
    initialise=initialise,
    names=_ERNIE.with_modules({"encoder.embeddings.task": ("ernie.embeddings.task_type_embeddings",)}),
    check_frame=between_cls_and_sep,
    classes=hugging_face_classes("Ernie", "PreTraining"),
    sized=partial(sized_as, ErnieConfig),
    pretraining=BertForPretraining,
    objectives=("mlm",),
    masked_lm=MlmHead,
    parts={**_POOLED, "nsp": "NSP head"},
    per_piece=PER_PIECE,
)

ELECTRA = Family(
    config=ConfigFormat(
        ElectraConfig,
        "ELECTRA",
        only_values={
            **ENCODER_ONLY,
            "summary_type": "first",
            "summary_use_proj": True,
            "summary_activation": "gelu",
        },
        bookkeeping=("summary_last_dropout",),
    ),
    initialise=initialise,
    names=names_under(
        "electra",
        {
            "encoder.embeddings.projection": ("electra.embeddings_project",),
            "encoder.pooler": ("sequence_summary.summary",),
            "mlm.dense": ("generator_predictions.dense",),
            "mlm.norm": ("generator_predictions.LayerNorm",),
            "mlm": ("generator_lm_head",),
            "replaced.dense": ("discriminator_predictions.dense",),
            "replaced.out": ("discriminator_predictions.dense_prediction",),
        },
        copies={"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"},
        in_classes={CLASSIFIER: {"sequence_summary.summary": "classifier.dense", "classifier": "classifier.out_proj"}},
        roots=("embeddings_project",),
    ),
    check_frame=between_cls_and_sep,
    classes={**hugging_face_classes("Electra"), "replaced": "ElectraForPreTraining"},
    sized=electra.sized,
    pretraining=electra.masked_lm,
    objectives=("mlm",),
    masked_lm=electra.mlm_head,
    token_heads={"replaced": electra.ReplacedTokenHead},
    parts={"mlm": "MLM head"},
    per_piece=PER_PIECE,
)

_GROUP = "albert.encoder.albert_layer_groups.{i}.albert_layers.{i}"
ALBERT = Family(
    config=ConfigFormat(
        AlbertConfig,
        "ALBERT",
        only_values=ENCODER_ONLY,
        bookkeeping=(
            *("classifier_dropout_prob", "down_scale_factor", "gap_size", "net_structure_type"),
            "num_memory_blocks",
        ),
    ),
    initialise=initialise,
    names=NameTable(
        modules={
            "encoder.embeddings.token": ("albert.embeddings.word_embeddings",),
            "encoder.embeddings.segment": ("albert.embeddings.token_type_embeddings",),
            "encoder.embeddings.position": ("albert.embeddings.position_embeddings",),
            "encoder.embeddings.norm": ("albert.embeddings.LayerNorm",),
            "encoder.embeddings.projection": ("albert.encoder.embedding_hidden_mapping_in",),
            "encoder.layers.{i}.{i}.attention.qkv": tuple(
                f"{_GROUP}.attention.{name}" for name in ("query", "key", "value")
            ),
            "encoder.layers.{i}.{i}.attention.out": (f"{_GROUP}.attention.dense",),
            "encoder.layers.{i}.{i}.attention_norm": (f"{_GROUP}.attention.LayerNorm",),
            "encoder.layers.{i}.{i}.up": (f"{_GROUP}.ffn",),
            "encoder.layers.{i}.{i}.down": (f"{_GROUP}.ffn_output",),
            "encoder.layers.{i}.{i}.output_norm": (f"{_GROUP}.full_layer_layer_norm",),
            "encoder.pooler": ("albert.pooler",),
            "mlm.dense": ("predictions.dense",),
            "mlm.norm": ("predictions.LayerNorm",),
            "mlm": ("predictions",),
            "nsp": ("sop_classifier.classifier",),
            **TASK_MODULES,
        },
        branches=OWN_BRANCHES,
        optional=OPTIONAL,
        copies={
            "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
            "predictions.decoder.bias": "predictions.bias",
        },
        counters=("albert.embeddings.position_ids",),
        respell=in_full("albert", "embeddings", "encoder", "pooler"),
        layers=re.compile(r"albert\.encoder\.albert_layer_groups\.(\d+)\."),
        left_out="albert.",
    ),
    check_frame=between_cls_and_sep,
    classes=hugging_face_classes("Albert", "PreTraining"),
    sized=partial(sized_as, AlbertConfig),
    pretraining=BertForPretraining,
    objectives=("mlm",),
    masked_lm=MlmHead,
    parts={**_POOLED, "nsp": "SOP head"},
    per_piece=PER_PIECE,
)

_LAYER = "mpnet.encoder.layer.{i}"
MPNET = Family(
    config=ConfigFormat(MPNetConfig, "MPNet", only_values={**ENCODER_ONLY, "relative_attention_num_buckets": BUCKETS}),
    initialise=initialise,
    names=names_under(
        "mpnet",
        {
            "encoder.layers.{i}.attention.qkv": tuple(f"{_LAYER}.attention.attn.{name}" for name in "qkv"),
            "encoder.layers.{i}.attention.out": (f"{_LAYER}.attention.attn.o",),
            "encoder.layers.{i}.attention_norm": (f"{_LAYER}.attention.LayerNorm",),
            "encoder.distance": ("mpnet.encoder.relative_attention_bias",),
            "encoder.pooler": ("mpnet.pooler.dense",),
            "mlm.dense": ("lm_head.dense",),
            "mlm.norm": ("lm_head.layer_norm",),
            "mlm": ("lm_head",),
        },
        copies={
            "lm_head.decoder.weight": "mpnet.embeddings.word_embeddings.weight",
            "lm_head.decoder.bias": "lm_head.bias",
        },
        in_classes={CLASSIFIER: {"mpnet.pooler.dense": "classifier.dense", "classifier": "classifier.out_proj"}},
    ),
    check_frame=between_cls_and_sep,
    classes=hugging_face_classes("MPNet"),
    sized=partial(sized_as, MPNetConfig, max_position_embeddings=514, layer_norm_eps=1e-5),
    pretraining=mpnet.masked_lm,
    objectives=("mlm",),
    masked_lm=mpnet.mlm_head,
    parts=_POOLED,
    per_piece=PER_PIECE,
)

_BLOCK = "distilbert.transformer.layer.{i}"
DISTILBERT = Family(
    config=ConfigFormat(
        DistilBertConfig,
        "DistilBERT",
        only_values=ENCODER_ONLY,
        # Sinusoids are how its positions start; they lie in the folder like any others.
        bookkeeping=("sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout", "tie_weights_"),
    ),
    initialise=initialise,
    names=NameTable(
        modules={
            "encoder.embeddings.token": ("distilbert.embeddings.word_embeddings",),
            "encoder.embeddings.position": ("distilbert.embeddings.position_embeddings",),
            "encoder.embeddings.norm": ("distilbert.embeddings.LayerNorm",),
            "encoder.layers.{i}.attention.qkv": tuple(f"{_BLOCK}.attention.{name}_lin" for name in "qkv"),
            "encoder.layers.{i}.attention.out": (f"{_BLOCK}.attention.out_lin",),
            "encoder.layers.{i}.attention_norm": (f"{_BLOCK}.sa_layer_norm",),
            "encoder.layers.{i}.up": (f"{_BLOCK}.ffn.lin1",),
            "encoder.layers.{i}.down": (f"{_BLOCK}.ffn.lin2",),
            "encoder.layers.{i}.output_norm": (f"{_BLOCK}.output_layer_norm",),
            "encoder.pooler": ("pre_classifier",),
            "mlm.dense": ("vocab_transform",),
            "mlm.norm": ("vocab_layer_norm",),
            "mlm": ("vocab_projector",),
            **TASK_MODULES,
        },
        branches=OWN_BRANCHES,
        optional=OPTIONAL,
        copies={"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"},
        counters=("distilbert.embeddings.position_ids",),
        respell=in_full("distilbert", "embeddings", "transformer"),
        layers=re.compile(r"distilbert\.transformer\.layer\.(\d+)\."),
        left_out="distilbert.",
    ),
    check_frame=between_cls_and_sep,
    classes=hugging_face_classes("DistilBert"),
    sized=distilbert.sized,
    pretraining=distilbert.masked_lm,
    objectives=("mlm",),
    masked_lm=distilbert.mlm_head,
    parts={"mlm": "MLM head"},
    per_piece=PER_PIECE,
)
