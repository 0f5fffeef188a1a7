from __future__ import annotations

from itertools import chain

import pytest

from heedful.checkpoints.bert_names import BERT_NAMES


def test_no_two_rows_share_a_name_on_disk() -> None:
    theirs = list(chain.from_iterable(BERT_NAMES.modules.values()))
    assert len(theirs) == len(set(theirs))


def test_a_number_is_carried_over() -> None:
    assert BERT_NAMES.on_disk("encoder.layers.11.attention.qkv.bias") == tuple(
        f"bert.encoder.layer.11.attention.self.{part}.bias" for part in ("query", "key", "value")
    )
    assert BERT_NAMES.on_disk("mlm.bias") == ("cls.predictions.bias",)


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight"),
        ("bert.encoder.layer.0.output.LayerNorm.beta", "bert.encoder.layer.0.output.LayerNorm.bias"),
        ("pooler.dense.bias", "bert.pooler.dense.bias"),
        ("classifier.weight", "classifier.weight"),
    ],
)
def test_other_spellings_are_understood(name: str, spelled: str) -> None:
    assert BERT_NAMES.respell(name) == spelled
    assert BERT_NAMES.knows(spelled)


@pytest.mark.parametrize(
    "name",
    [
        "lm_head.weight",
        "bert.encoder.layer.x.output.dense.weight",
        "bert.encoder.layer.0.attention.self.query.weight_scale",
        "bert.pooler.dense.gamma",
        "bert.pooler.weight",
        "x",
    ],
)
def test_other_tensors_are_unknown(name: str) -> None:
    assert not BERT_NAMES.knows(name)


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("bert.encoder.layer.0.adapter.weight", True),
        ("bert.embeddings.task_type_embeddings.weight", True),
        ("encoder.layer.0.adapter.weight", True),
        ("lm_head.weight", False),
        ("cls.chain.weight", False),
        ("bertha.weight", False),
    ],
)
def test_what_stands_inside_the_encoder(name: str, inside: bool) -> None:
    assert BERT_NAMES.inside_encoder(BERT_NAMES.respell(name)) == inside
