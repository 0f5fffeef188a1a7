"""The registry of families: who is known, what is refused, and how nested configs tell which kind they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heedful.checkpoints import families
from heedful.checkpoints.bert_family import BERT
from heedful.checkpoints.families import family_named, family_of, register_family
from heedful.config import from_mapping, to_mapping
from heedful.errors import HeedfulError
from heedful.models.bert import BertConfig
from heedful.models.encoder import EncoderConfig

HERE = Path("config.json")


@pytest.fixture(autouse=True)
def registry_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "_known", dict(families._known))


def test_bert_is_known_by_its_type_and_by_the_classes_of_old_folders() -> None:
    assert family_named("bert") is BERT
    assert family_of({"model_type": "bert"}, HERE) is BERT
    assert family_of({"architectures": ["BertForMaskedLM"]}, HERE) is BERT


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another type": ({"model_type": "t5"}, r"'t5' is not supported(.|\n)*config\.json(.|\n)*of the type bert"),
    "a translation model": ({"model_type": "heedful-seq2seq"}, r"not supported(.|\n)*heedful translate run"),
    "another class": ({"architectures": ["T5Model"]}, r"no model_type is given(.|\n)*of the type bert"),
    "nothing": ({}, "no model_type is given"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_is_refused_with_what_is(name: str) -> None:
    values, message = REFUSED[name]
    with pytest.raises(HeedfulError, match=message):
        family_of(values, HERE)


def test_a_family_may_take_the_place_of_ours() -> None:
    mine = replace(BERT, parts={})
    register_family(mine)
    assert family_named("bert") is mine


def test_an_installed_package_may_bring_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name = "bert"

        def load(self) -> Any:
            return BERT

    monkeypatch.setattr(families, "_known", {})
    monkeypatch.setattr(families, "entry_points", lambda group: [Entry()] if group == "heedful.families" else [])
    assert family_named("bert") is BERT
    with pytest.raises(HeedfulError, match="of the type bert"):
        family_named("other")


def test_a_nested_config_says_which_kind_it_is_and_is_a_berts_if_it_does_not() -> None:
    config = BertConfig(vocab_size=7)
    assert from_mapping(EncoderConfig, to_mapping(config), "here") == config
    with pytest.raises(HeedfulError, match=r"no encoder 'other'(.|\n)*here(.|\n)*bert"):
        from_mapping(EncoderConfig, {"model_type": "other"}, "here")


def test_dropout_is_set_in_the_config_and_reaches_every_layer() -> None:
    config = BertConfig(vocab_size=7, hidden_size=8, num_attention_heads=2, num_hidden_layers=2, intermediate_size=8)
    encoder = config.with_dropout(0.35).build()
    assert encoder.config.dropout == 0.35
    assert {module.p for module in encoder.modules() if hasattr(module, "p")} == {0.35}
    assert {layer.attention.dropout for layer in encoder.layers} == {0.35}
