"""The families there are, by model type: ours, those a program registers, and those of installed packages.

A package adds a family by an entry point of the group `heedful.families`, such as

    [project.entry-points."heedful.families"]
    mine = "my_package.encoder:FAMILY"
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from heedful.checkpoints.bert_family import BERT
from heedful.checkpoints.bert_relatives import ALBERT, DISTILBERT, ELECTRA, ERNIE, MPNET
from heedful.checkpoints.elmo_family import ELMO
from heedful.checkpoints.family import Family
from heedful.checkpoints.gpt_family import GPT
from heedful.checkpoints.lstm_family import LSTM
from heedful.checkpoints.modernbert_family import MODERNBERT
from heedful.checkpoints.roberta_family import ROBERTA, XLM_ROBERTA
from heedful.checkpoints.word2vec_family import WORD2VEC
from heedful.checkpoints.xlnet_family import XLNET
from heedful.errors import HeedfulError

_OURS: tuple[Family[Any], ...] = (
    *(BERT, ROBERTA, XLM_ROBERTA, DISTILBERT, ALBERT, ELECTRA, ERNIE, MPNET, MODERNBERT),
    *(WORD2VEC, LSTM, ELMO, GPT, XLNET),
)
_known: dict[str, Family[Any]] = {family.model_type: family for family in _OURS}


def register_family(family: Family[Any]) -> None:
    """Make a family known to this process, for its commands too; it may take the place of one of ours."""
    _known[family.model_type] = family


def family_named(model_type: str, where: object = None) -> Family[Any]:
    """The family of a model type."""
    if model_type in _known:
        return _known[model_type]
    for family in _known.values():
        if model_type in family.aliases:
            return family
    others = entry_points(group="heedful.families")
    for entry in others:
        if entry.name == model_type:
            register_family(entry.load())
            return _known[model_type]
    names = " or ".join([*_known, *(entry.name for entry in others)])
    remedy = f"use a model of the type {names}"
    if model_type.startswith("heedful-"):
        remedy = "it is a translation model: use `heedful translate run`, `score` or `evaluate`"
    raise HeedfulError(f"the model_type {model_type!r} is not supported", where=where, remedy=remedy)


def family_of(config: Mapping[str, Any], where: Path) -> Family[Any]:
    """The family that a `config.json` says its model is of."""
    model_type = config.get("model_type")
    if model_type is not None:
        return family_named(str(model_type), where)
    for family in _known.values():  # written before config.json had a model_type
        if family.class_prefix and str(config.get("architectures")).startswith(f"['{family.class_prefix}"):
            return family
    names = " or ".join(_known)
    raise HeedfulError("no model_type is given", where=where, remedy=f"use a model of the type {names}")
