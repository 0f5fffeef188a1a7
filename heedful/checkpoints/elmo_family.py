"""ELMo as a family: a folder of ours, or one as it was published."""

from __future__ import annotations

from pathlib import Path

from heedful.checkpoints.config_json import ConfigFormat
from heedful.checkpoints.family import Family
from heedful.checkpoints.names import own_names
from heedful.errors import HeedfulError
from heedful.models.elmo import ElmoConfig, ElmoForPretraining, initialise, sized
from heedful.text.elmo_pipeline import character_tokenizer
from heedful.text.tokenizer import Tokenizer


def check_frame(tokenizer: Tokenizer, where: Path) -> None:
    """Refuse a tokenizer whose tokens are not bytes."""
    if tokenizer.vocabulary != character_tokenizer().vocabulary or tokenizer.encode("").tokens != ["<S>", "</S>"]:
        raise HeedfulError(
            "the tokenizer does not read bytes between <S> and </S>, as ELMo does",
            where=where,
            remedy="use the tokenizer.json that was written with the model, or remove it",
        )


ELMO = Family(
    config=ConfigFormat(ElmoConfig, "ELMo"),
    initialise=initialise,
    names=own_names("softmax"),
    check_frame=check_frame,
    other_tokenizer=lambda folder: character_tokenizer(split_signs=False),  # the published one read such text
    sized=sized,
    pretraining=ElmoForPretraining,
    objectives=("bilm",),
    two_way_lm=ElmoForPretraining,
    parts={"softmax": "softmax over words"},
)
