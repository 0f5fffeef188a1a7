"""BERT against `transformers` on random models: every layer, map, pooler and logit, for mixed lengths 1 … 512."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
import torch
import transformers
from torch.nn.utils.rnn import pad_sequence

from heedful.checkpoints.encoder_folder import load_encoder, load_for_pretraining
from heedful.checkpoints.folder import read_folder
from heedful.data.batching import flat_batch
from heedful.models.bert import Bert, BertForPretraining
from heedful.nn.packed_linear import can_pack
from heedful.schema import Batch

LENGTHS = (512, 1, 64, 64, 2, 300, 7, 1)
SHAPES = [
    {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48},
    {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 96},
    {
        "hidden_size": 20,
        "num_hidden_layers": 5,
        "num_attention_heads": 5,
        "intermediate_size": 10,
        "type_vocab_size": 3,
    },
]


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: f"{shape['num_hidden_layers']} layers")
def theirs(request: pytest.FixtureRequest) -> transformers.BertForPreTraining:
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=90, attn_implementation="eager", **request.param)
    model = transformers.BertForPreTraining(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.2)
    return model.eval()


@pytest.fixture(scope="module")
def folder(theirs: transformers.BertForPreTraining, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("theirs") / "model"
    theirs.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def ours(folder: Path) -> BertForPretraining:
    return load_for_pretraining(read_folder(folder), seed=0)


@pytest.fixture(scope="module")
def batch(theirs: transformers.BertForPreTraining) -> Batch:
    rng = torch.Generator().manual_seed(1)
    kinds = theirs.config.type_vocab_size
    ids, segments = ([torch.randint(highest, (n,), generator=rng).tolist() for n in LENGTHS] for highest in (90, kinds))
    return flat_batch(ids, segments)


@pytest.fixture(scope="module")
def expected(theirs: transformers.BertForPreTraining, batch: Batch) -> transformers.utils.ModelOutput:
    ids, segments = (pad_sequence(list(x.split(LENGTHS)), batch_first=True) for x in (batch.ids, batch.segments))
    mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]).long()
    with torch.inference_mode():
        return theirs(
            input_ids=ids,
            token_type_ids=segments,
            attention_mask=mask,
            output_hidden_states=True,
            output_attentions=True,
        )


def flat(padded: torch.Tensor) -> torch.Tensor:
    return torch.cat([rows[:n] for rows, n in zip(padded, LENGTHS, strict=True)])


def firsts(states: torch.Tensor) -> torch.Tensor:
    return states[[0, *accumulate(LENGTHS[:-1])]]


def assert_close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@torch.inference_mode()
def assert_same_states(encoder: Bert, batch: Batch, expected: transformers.utils.ModelOutput) -> None:
    layers = encoder.config.num_hidden_layers
    found = encoder(batch, hidden=range(layers + 1), attention=range(1, layers + 1))
    assert len(found.hidden) == len(expected.hidden_states) and len(found.attention) == len(expected.attentions)
    for number, states in found.hidden.items():
        assert_close(states, flat(expected.hidden_states[number]))
    for number, maps in found.attention.items():
        for one, padded, n in zip(maps, expected.attentions[number - 1], LENGTHS, strict=True):
            assert_close(one, padded[:, :n, :n])


def test_every_layer_and_every_map(
    ours: BertForPretraining, batch: Batch, expected: transformers.utils.ModelOutput
) -> None:
    assert_same_states(ours.encoder, batch, expected)


@pytest.mark.processor
@pytest.mark.skipif(not can_pack(), reason="needs oneDNN")
def test_every_layer_and_every_map_of_a_packed_encoder(
    folder: Path, batch: Batch, expected: transformers.utils.ModelOutput
) -> None:
    encoder = load_encoder(read_folder(folder))
    encoder.pack()
    assert_same_states(encoder, batch, expected)


@pytest.mark.processor
@pytest.mark.skipif(not can_pack(), reason="needs oneDNN")
@torch.inference_mode()
def test_every_layer_of_each_text_alone(folder: Path, batch: Batch, expected: transformers.utils.ModelOutput) -> None:
    """One text goes a shorter way through a packed encoder."""
    encoder = load_encoder(read_folder(folder))
    encoder.pack()
    texts = zip(batch.ids.split(LENGTHS), batch.segments.split(LENGTHS), strict=True)
    alone = [
        encoder(flat_batch([ids.tolist()], [segments.tolist()]), hidden=range(encoder.layer_count + 1))
        for ids, segments in texts
    ]
    for number, states in enumerate(expected.hidden_states):
        assert_close(torch.cat([one.hidden[number] for one in alone]), flat(states))


@torch.inference_mode()
def test_pooler_and_both_heads(
    ours: BertForPretraining,
    theirs: transformers.BertForPreTraining,
    batch: Batch,
    expected: transformers.utils.ModelOutput,
) -> None:
    last = ours.encoder(batch).last
    assert_close(ours.encoder.pool(firsts(last)), theirs.bert.pooler(expected.hidden_states[-1]))
    assert_close(ours.mlm_logits(last), flat(expected.prediction_logits))
    assert_close(ours.nsp_logits(firsts(last)), expected.seq_relationship_logits)
