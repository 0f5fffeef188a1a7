"""Objectives by name: what a family is pretrained on, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from heedful.checkpoints.bert_family import BERT
from heedful.errors import HeedfulError
from heedful.tasks import objectives
from heedful.tasks.masked_objective import MaskedObjective
from heedful.tasks.objectives import MLM, objective_of, register_objective
from heedful.text.bert_pipeline import wordpiece_tokenizer
from heedful.text.tokenizer import Tokenizer


class Other(MaskedObjective):
    name = "other"


@pytest.fixture(autouse=True)
def registry_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(objectives, "_known", dict(objectives._known))
    yield


def test_a_family_names_its_objectives() -> None:
    assert objective_of(BERT) is MLM and objective_of(BERT, "mlm") is MLM
    other = Other()
    family = replace(BERT, objectives=("mlm", "other"))
    with pytest.raises(HeedfulError, match=r"no objective 'other'(.|\n)*mlm"):
        objective_of(family, "other")
    register_objective(other)
    assert objective_of(family, "other") is other
    with pytest.raises(HeedfulError, match=r"bert is not pretrained by 'other'(.|\n)*mlm"):
        objective_of(BERT, "other")


def test_a_tokenizer_without_what_it_needs_is_refused() -> None:
    pieces = {piece: number for number, piece in enumerate(["[UNK]", "[CLS]", "[SEP]", "a"])}
    corpus: Any = SimpleNamespace(tokenizer=Tokenizer(wordpiece_tokenizer(pieces, lowercase=True)))
    with pytest.raises(HeedfulError, match=r"no \[MASK\], which masked language modelling needs"):
        MLM.check(corpus)
