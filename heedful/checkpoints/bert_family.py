"""BERT as a family: its config.json, its frame, its heads and what it is pretrained on."""

from __future__ import annotations

from pathlib import Path

from heedful.checkpoints.bert_names import BERT_NAMES
from heedful.checkpoints.config_json import ConfigFormat
from heedful.checkpoints.family import Family
from heedful.errors import HeedfulError
from heedful.models.bert import BertConfig, BertForPretraining, MlmHead, initialise, sized
from heedful.text.tokenizer import Tokenizer


def check_frame(tokenizer: Tokenizer, where: Path) -> None:
    """Refuse a tokenizer that does not put texts between [CLS] and [SEP]."""
    frame = [tokenizer.special_tokens[role] for role in ("cls", "sep")]
    if tokenizer.encode("").tokens != frame:
        raise HeedfulError(
            f"the tokenizer does not put texts between {' and '.join(frame)}, as BERT was trained to see them",
            where=where,
            remedy="use the tokenizer.json that belongs to the model (its post_processor adds them), or its vocab.txt",
        )


BERT = Family(
    config=ConfigFormat(
        BertConfig,
        "BERT",
        only_values={
            "position_embedding_type": "absolute",
            "is_decoder": False,
            "is_encoder_decoder": False,
            "add_cross_attention": False,
            "tie_word_embeddings": True,
            "pruned_heads": {},
            "quantization_config": None,
        },
        bookkeeping=(
            *("directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"),
            *("pooler_size_per_head", "pooler_type"),
        ),
    ),
    initialise=initialise,
    names=BERT_NAMES,
    check_frame=check_frame,
    classes={
        "Model": "BertModel",
        "PreTraining": "BertForPreTraining",
        "SequenceClassification": "BertForSequenceClassification",
        "TokenClassification": "BertForTokenClassification",
        "QuestionAnswering": "BertForQuestionAnswering",
        "MultipleChoice": "BertForMultipleChoice",
    },
    class_prefix="Bert",
    sized=sized,
    pretraining=BertForPretraining,
    objectives=("mlm",),
    masked_lm=MlmHead,
    parts={"encoder.pooler": "pooler", "mlm": "MLM head", "nsp": "NSP head"},
    per_piece=("encoder.embeddings.token.weight", "mlm.bias"),
)
