"""Every family against `transformers` on random weights: all layers, maps and heads, and folders both ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import nn
from torch.nn.utils.rnn import pad_sequence

import heedful
from heedful.checkpoints.conversion import convert
from heedful.checkpoints.encoder_folder import load_encoder, load_for_pretraining, load_head, save_model
from heedful.checkpoints.families import family_named
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import load_for_task, read_task, save_for_task
from heedful.data.batching import flat_batch
from heedful.inference.masked_lm import load_mlm_head
from heedful.models.electra import ReplacedTokenHead
from heedful.models.encoder import Encoder
from heedful.models.heads import SequenceClassifier, SpanFinder, Tagger, freeze
from heedful.nn.packed_linear import can_pack
from heedful.nn.pooling import first_rows
from heedful.schema import Batch, Selection
from heedful.text.tokenizer import Tokenizer

LENGTHS = (60, 17, 17, 5, 2, 1)
LABELS = ("O", "B-PER", "I-PER")
CLEAN = {"missing_keys": set(), "unexpected_keys": set(), "mismatched_keys": set()}
SHAPE = {
    "vocab_size": 130,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 66,
}
MODERN = SHAPE | {"num_hidden_layers": 5, "local_attention": 10, "pad_token_id": 0}


@dataclass(frozen=True)
class Case:
    """Classes of theirs, and the shape of a small model."""

    prefix: str
    config: dict[str, Any]
    segments: int | None = 2
    without: tuple[str, ...] = ()  # classes that they do not have
    mlm: str = "MaskedLM"

    def their_config(self, **more: Any) -> transformers.PretrainedConfig:
        kind = getattr(transformers, f"{self.prefix}Config")
        return kind(**self.config, attn_implementation="eager", **more)

    def their_model(self, name: str, **more: Any) -> transformers.PreTrainedModel:
        torch.manual_seed(0)
        return stirred(getattr(transformers, f"{self.prefix}{name}")(self.their_config(**more)))


CASES = {
    "roberta": Case("Roberta", SHAPE | {"type_vocab_size": 1}, segments=None),
    "xlm-roberta": Case("XLMRoberta", SHAPE | {"type_vocab_size": 1, "layer_norm_eps": 1e-5}, segments=None),
    "ernie": Case("Ernie", SHAPE | {"use_task_id": True, "hidden_act": "relu"}, mlm="PreTraining"),
    "ernie without tasks": Case("Ernie", SHAPE, mlm="PreTraining"),
    "electra": Case("Electra", SHAPE | {"embedding_size": 12}),
    "electra of one width": Case("Electra", SHAPE | {"embedding_size": 24}),
    "albert": Case("Albert", SHAPE | {"embedding_size": 12}, mlm="PreTraining"),
    "albert of two groups": Case(
        "Albert", SHAPE | {"embedding_size": 24, "num_hidden_groups": 2, "num_hidden_layers": 5}, mlm="PreTraining"
    ),
    "mpnet": Case("MPNet", SHAPE, segments=None),
    "distilbert": Case(
        "DistilBert",
        {
            "vocab_size": 130,
            "dim": 24,
            "n_layers": 3,
            "n_heads": 3,
            "hidden_dim": 40,
            "max_position_embeddings": 66,
        },
        segments=None,
    ),
    "modernbert": Case("ModernBert", MODERN, segments=None),
    "modernbert by means": Case("ModernBert", MODERN | {"classifier_pooling": "mean"}, segments=None),
    "modernbert with biases": Case(
        "ModernBert",
        MODERN | dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), True),
        segments=None,
    ),
}
HEADS: dict[str, tuple[str, Callable[[Encoder], nn.Module], dict[str, Any], bool]] = {
    "classify": (
        "SequenceClassification",
        lambda encoder: SequenceClassifier(encoder, 3),
        {"task": "classify", "labels": list(LABELS)},
        False,
    ),
    "tag": (
        "TokenClassification",
        lambda encoder: Tagger(encoder, 3),
        {"task": "tag", "labels": list(LABELS)},
        True,
    ),
    "answer": ("QuestionAnswering", SpanFinder, {"task": "answer"}, True),
    "choose": ("MultipleChoice", lambda encoder: SequenceClassifier(encoder, 1), {"task": "choose"}, False),
}


def stirred(model: nn.Module) -> nn.Module:
    """The model with random weights; norms stay about one, so that differences come through to the logits."""
    rng = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(float("norm" in name.lower() and name.endswith("weight")), 0.2, generator=rng)
    return model.eval()


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def batch_of(case: Case) -> Batch:
    rng = torch.Generator().manual_seed(0)
    ids = [torch.randint(5, 130, (n,), generator=rng).tolist() for n in LENGTHS]
    segments = [torch.randint(case.segments or 1, (n,), generator=rng).tolist() for n in LENGTHS]
    return flat_batch(ids, segments)


def padded(case: Case, batch: Batch) -> dict[str, torch.Tensor]:
    """A batch as `transformers` wants it."""
    pad = case.their_config().pad_token_id
    ids = pad_sequence(list(batch.ids.split(LENGTHS)), batch_first=True, padding_value=pad)
    mask = pad_sequence([torch.ones(n, dtype=torch.long) for n in LENGTHS], batch_first=True)
    segments = pad_sequence(list(batch.segments.split(LENGTHS)), batch_first=True)
    given = {"input_ids": ids, "attention_mask": mask}
    return given | ({"token_type_ids": segments} if case.segments else {})


def flat(states: torch.Tensor) -> torch.Tensor:
    return torch.cat([rows[:n] for rows, n in zip(states, LENGTHS, strict=True)])


def assert_close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@torch.inference_mode()
def assert_same_states(encoder: Encoder, theirs: transformers.PreTrainedModel, case: Case) -> None:
    batch, layers = batch_of(case), encoder.layer_count
    found = encoder(batch, hidden=range(layers + 1), attention=range(1, layers + 1))
    wanted = theirs(**padded(case, batch), output_hidden_states=True, output_attentions=True)
    assert len(found.hidden) == len(wanted.hidden_states) and len(found.attention) == len(wanted.attentions)
    for number, states in found.hidden.items():
        assert_close(states, flat(wanted.hidden_states[number]))
    assert_close(encoder(batch).last, flat(wanted.last_hidden_state))
    for number, maps in found.attention.items():
        for one, whole, n in zip(maps, wanted.attentions[number - 1], LENGTHS, strict=True):
            assert_close(one, whole[:, :n, :n])
    rows = torch.tensor([0, 7, 61, 80])
    assert_close(encoder.states_at(batch, rows), found.hidden[layers][rows])


def test_every_layer_and_every_map(case: Case, tmp_path: Path) -> None:
    theirs = case.their_model("Model")
    theirs.save_pretrained(tmp_path / "theirs")
    encoder = load_encoder(read_folder(tmp_path / "theirs"))
    assert_same_states(encoder, theirs, case)
    if can_pack():
        encoder.pack()
        assert_same_states(encoder, theirs, case)


def test_an_encoder_of_ours_there(case: Case, tmp_path: Path) -> None:
    case.their_model("Model").save_pretrained(tmp_path / "theirs")
    folder = read_folder(tmp_path / "theirs")
    save_model(stirred(load_encoder(folder)), tmp_path / "ours", None, foreign=folder.config)
    theirs, info = getattr(transformers, f"{case.prefix}Model").from_pretrained(
        tmp_path / "ours", output_loading_info=True, attn_implementation="eager"
    )
    assert {key: set(info[key]) for key in CLEAN} == CLEAN
    assert_same_states(load_encoder(read_folder(tmp_path / "ours")), theirs, case)


@torch.inference_mode()
def test_masked_words_both_ways(case: Case, tmp_path: Path) -> None:
    theirs = case.their_model(f"For{case.mlm}")
    theirs.save_pretrained(tmp_path / "theirs")
    folder, batch = read_folder(tmp_path / "theirs"), batch_of(case)
    ours = load_for_pretraining(folder, seed=0)
    output = theirs(**padded(case, batch))
    wanted = flat(output.logits if "logits" in output else output.prediction_logits)
    assert_close(ours.mlm_logits(ours.encoder(batch).last), wanted)
    encoder, head = load_encoder(folder), load_mlm_head(folder)
    assert_close(head(encoder(batch).last, encoder.token_matrix), wanted)
    save_model(stirred(ours), tmp_path / "ours", None, foreign=folder.config)
    again, info = getattr(transformers, f"{case.prefix}For{case.mlm}").from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert {key: set(info[key]) for key in CLEAN} == CLEAN
    output = again.eval()(**padded(case, batch))
    wanted = flat(output.logits if "logits" in output else output.prediction_logits)
    assert_close(ours.mlm_logits(ours.encoder(batch).last), wanted)


@torch.inference_mode()
def test_the_head_of_a_discriminator_both_ways(tmp_path: Path) -> None:
    case = CASES["electra"]
    theirs = case.their_model("ForPreTraining")
    theirs.save_pretrained(tmp_path / "theirs")
    folder, batch = read_folder(tmp_path / "theirs"), batch_of(case)
    found = load_head(folder, "replaced", ReplacedTokenHead)(load_encoder(folder)(batch).last)
    assert found.std() > 0.1
    assert_close(found, flat(theirs(**padded(case, batch)).logits))
    convert(tmp_path / "theirs", tmp_path / "ours")
    again, info = transformers.ElectraForPreTraining.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert {key: set(info[key]) for key in CLEAN} == CLEAN
    assert_close(flat(again.eval()(**padded(case, batch)).logits), found)


@torch.inference_mode()
def assert_same_logits(ours: nn.Module, theirs: transformers.PreTrainedModel, case: Case, name: str) -> None:
    batch, every = batch_of(case), HEADS[name][3]
    rows = torch.arange(sum(LENGTHS)) if every else first_rows(LENGTHS)
    found = ours(Selection(batch, rows, LENGTHS if every else (1,) * len(LENGTHS)))
    given = padded(case, batch)
    if name == "choose":
        given = {key: value[None] for key, value in given.items()}
    output = theirs.eval()(**given)
    if name == "answer":
        wanted = flat(torch.stack([output.start_logits, output.end_logits], dim=-1))
    else:
        wanted = flat(output.logits) if every else output.logits.reshape(len(LENGTHS), -1)
    assert found.shape == wanted.shape and found.std() > 0.1
    assert_close(found, wanted)


@pytest.mark.parametrize("name", HEADS)
def test_heads_both_ways(case: Case, name: str, tmp_path: Path) -> None:
    kind, build, task, _ = HEADS[name]
    if kind in case.without:
        return
    named = {"id2label": dict(enumerate(LABELS))} if "labels" in task else {}
    theirs = case.their_model(f"For{kind}", **named)
    theirs.save_pretrained(tmp_path / "theirs")
    assert read_task(tmp_path / "theirs") == task
    folder = read_folder(tmp_path / "theirs")
    ours = load_for_task(folder, build, seed=0, complete=True)
    assert_same_logits(ours, theirs, case, name)
    labels = LABELS if "labels" in task else ()
    stirred(ours)
    save_for_task(ours, tmp_path / "ours", None, task=task, architecture=kind, labels=labels, foreign=folder.config)
    there, info = getattr(transformers, f"{case.prefix}For{kind}").from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert {key: set(info[key]) for key in CLEAN} == CLEAN
    assert_same_logits(ours, there, case, name)
    assert_same_logits(load_for_task(read_folder(tmp_path / "ours"), build, 1, complete=True), there, case, name)


@torch.inference_mode()
def test_embed(case: Case, tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    theirs = case.their_model("Model")
    theirs.save_pretrained(tmp_path / "theirs")
    tiny_tokenizer.save(tmp_path / "theirs")
    texts = ["the cat sees", "unaffordable love, zebra!", "a"]
    vectors = heedful.load(tmp_path / "theirs", "cpu").embed(texts, pooling="mean")
    for text, vector in zip(texts, vectors, strict=True):
        states = theirs(torch.tensor([tiny_tokenizer.encode(text).ids])).last_hidden_state[0]
        np.testing.assert_allclose(vector, states.mean(0).numpy(), atol=1e-5)


def test_a_fresh_model_learns_from_every_layer(case: Case) -> None:
    config = case.their_config()
    family = family_named(config.model_type)
    if family.sized is None or family.pretraining is None:
        return
    own = family.config_of_size("tiny", 130)
    model = family.pretraining_model(own)
    family.initialise(model, own, 1)
    batch = batch_of(case)
    model.mlm_logits(model.encoder(batch).last).logsumexp(-1).sum().backward()
    unused = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    assert all(name.startswith(("nsp", "encoder.pooler")) for name in unused)
    freeze(model, "1")
    assert not model.encoder.token_matrix.requires_grad
