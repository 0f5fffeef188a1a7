"""XLNet as a family: its config.json, its frame, its head and what it is pretrained on."""

from __future__ import annotations

from pathlib import Path

from heedful.checkpoints.config_json import CLASSIFIER, ConfigFormat
from heedful.checkpoints.family import Family
from heedful.checkpoints.xlnet_names import XLNET_NAMES
from heedful.errors import HeedfulError
from heedful.models.informed_start import InformedStart
from heedful.models.xlnet import XlnetConfig, initialise, sized
from heedful.models.xlnet_lm import XlnetForPretraining
from heedful.text.tokenizer import Tokenizer


def check_frame(tokenizer: Tokenizer, where: Path) -> None:
    """Refuse a tokenizer that does not put <sep> and <cls> after texts."""
    frame = [tokenizer.special_tokens[role] for role in ("sep", "cls")]
    if tokenizer.encode("").tokens != frame:
        raise HeedfulError(
            f"the tokenizer does not put {' and '.join(frame)} after texts, as XLNet was trained to see them",
            where=where,
            remedy="use the tokenizer.json that belongs to the model (its post_processor adds them)",
        )


XLNET = Family(
    config=ConfigFormat(
        XlnetConfig,
        "XLNet",
        only_values={
            "attn_type": "bi",
            "bi_data": False,
            "clamp_len": -1,
            "same_length": False,
            "untie_r": True,
            "summary_type": "last",
            "summary_use_proj": True,
            "summary_activation": "tanh",
            "tie_word_embeddings": True,
            "is_decoder": False,
            "pruned_heads": {},
        },
        bookkeeping=(
            *("start_n_top", "end_n_top", "summary_last_dropout", "use_mems_eval", "use_mems_train", "pad_token_id"),
            *("task_specific_params", "n_token", "use_bfloat16"),
        ),
    ),
    initialise=initialise,
    names=XLNET_NAMES,
    check_frame=check_frame,
    classes={
        "Model": "XLNetModel",
        "PreTraining": "XLNetLMHeadModel",
        CLASSIFIER: "XLNetForSequenceClassification",
        "TokenClassification": "XLNetForTokenClassification",
        "QuestionAnswering": "XLNetForQuestionAnsweringSimple",
        "MultipleChoice": "XLNetForMultipleChoice",
    },
    class_prefix="XLNet",
    sized=sized,
    pretraining=XlnetForPretraining,
    informed=InformedStart(bias="lm.bias"),
    objectives=("permutation",),
    language_model=XlnetForPretraining,
    pooling="last",
    parts={"lm": "language model head"},
    per_piece=("encoder.embeddings.token.weight", "lm.bias"),
)
