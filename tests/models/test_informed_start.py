"""The informed start: frequencies as the first guess, vectors as embeddings, heads that look at their neighbours."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from heedful.checkpoints.bert_family import BERT
from heedful.data.batching import flat_batch
from heedful.models.bert import BertConfig, BertForPretraining, initialise
from heedful.models.informed_start import embedding_rows, inform, log_frequencies, rotation
from heedful.nn.positions import sinusoids

V = 50
COUNTS = torch.arange(V) % 7 * 20


def started(width: int = 64, heads: int = 4, vectors: torch.Tensor | None = None) -> BertForPretraining:
    config = BertConfig(V, width, num_hidden_layers=2, num_attention_heads=heads, intermediate_size=64)
    model = BertForPretraining(replace(config, max_position_embeddings=64))
    initialise(model, config, seed=1)
    assert BERT.informed is not None
    inform(model, BERT.informed, COUNTS, vectors)
    return model.eval()


@pytest.mark.parametrize("offset", [-3, -1, 0, 1, 2])
@pytest.mark.parametrize(("size", "width"), [(64, 256), (10, 30), (6, 6)])
def test_the_rotation_moves_sinusoids_by_the_offset(offset: int, size: int, width: int) -> None:
    table = sinusoids(40, width)[:, :size]
    turned = table[5:30] @ rotation(offset, size, width).T
    torch.testing.assert_close(turned, table[5 + offset : 30 + offset], atol=1e-5, rtol=0)


@pytest.mark.parametrize(("width", "heads"), [(128, 2), (256, 4), (192, 3), (64, 1), (60, 4)])
def test_by_places_alone_each_head_of_the_first_layer_looks_most_at_its_neighbour(width: int, heads: int) -> None:
    model = started(width, heads)
    model.encoder.embeddings.token.weight.data.zero_()  # a word is most like itself, which is left aside here
    ids = torch.randint(5, V, (40,), generator=torch.Generator().manual_seed(0)).tolist()
    with torch.no_grad():
        (maps,) = model.encoder(flat_batch([ids]), hidden=(), attention=[1]).attention[1]
    for head, offset in zip(range(heads), (-1, 1, -2, 2), strict=False):
        along = torch.stack([maps[head, i, i - 6 : i + 7] for i in range(8, 32)]).mean(0)
        assert int(along.argmax()) == 6 + offset


def test_the_first_guess_is_the_frequency_of_each_piece() -> None:
    expected = ((COUNTS + 1) / (COUNTS + 1).sum()).log()
    torch.testing.assert_close(log_frequencies(COUNTS), expected)
    model = started()
    torch.testing.assert_close(model.mlm.bias.detach(), expected)
    states = torch.randn(200, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        guess = model.mlm_logits(states).softmax(-1).mean(0)
    assert float((guess.log() - expected).abs().mean()) < 0.2


def test_embeddings_are_centred_of_one_length_and_random_where_nothing_was_seen() -> None:
    rng = torch.Generator().manual_seed(0)
    vectors, random = torch.randn(V, 64, generator=rng) + 3.0, 0.02 * torch.randn(V, 64, generator=rng)
    seen = COUNTS > 0
    rows = embedding_rows(vectors, seen, random)
    torch.testing.assert_close(rows[~seen], random[~seen])
    lengths = rows[seen].norm(dim=1)
    torch.testing.assert_close(lengths, torch.full_like(lengths, 0.02 * 8), rtol=0.05, atol=0)
    centred = vectors[seen] - vectors[seen].mean(0)
    assert float(torch.cosine_similarity(rows[seen], centred).min()) > 0.9999


def test_all_else_is_the_random_start() -> None:
    config = BertConfig(V, 64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    plain = BertForPretraining(replace(config, max_position_embeddings=64))
    initialise(plain, config, seed=1)
    informed, random = started().state_dict(), plain.state_dict()
    other = {name for name in random if not torch.equal(informed[name], random[name])}
    assert other == {"mlm.bias", "encoder.layers.0.attention.qkv.weight"}
