"""BERT as a module: what is computed, what comes back, and its use inside another model."""

from __future__ import annotations

from collections.abc import Collection

import pytest
import torch
from torch import nn

from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.bert import Bert, BertConfig, BertForPretraining, initialise, sized
from heedful.models.sizes import TRANSFORMER_SIZES
from heedful.schema import Encoded

CONFIG = BertConfig(
    vocab_size=30, hidden_size=12, num_hidden_layers=4, num_attention_heads=3, intermediate_size=20,
    max_position_embeddings=16,
)  # fmt: skip
BATCH = flat_batch([[2, 7, 3], [2, 3], [2, 9, 8, 3], [2, 5, 5, 3]])


@pytest.fixture
def bert() -> Bert:
    torch.manual_seed(0)
    return Bert(CONFIG).eval()


@pytest.mark.parametrize(
    ("hidden", "attention", "calls"),
    [
        ((-1,), (), 4),
        ((0,), (), 0),
        ((2,), (), 2),
        ((-2, 1), (), 3),
        ((0,), (2,), 2),
        ((), (-1,), 4),
        ((0, 1), (1,), 1),
    ],
)
def test_only_the_layers_asked_for_are_computed(
    bert: Bert, hidden: Collection[int], attention: Collection[int], calls: int
) -> None:
    called: list[nn.Module] = []
    for layer in bert.layers:
        layer.register_forward_hook(lambda module, *_: called.append(module))
    bert(BATCH, hidden=hidden, attention=attention)
    assert called == list(bert.layers)[:calls]


def test_asking_never_changes_the_type(bert: Bert) -> None:
    requests: list[dict[str, Collection[int]]] = [
        {}, {"hidden": ()}, {"hidden": range(5)}, {"attention": [1]}, {"hidden": (0,), "attention": (1, 2, 3, 4)}
    ]  # fmt: skip
    for request in requests:
        found = bert(BATCH, **request)
        assert type(found) is Encoded
        assert all(state.shape == (13, 12) for state in found.hidden.values())
        assert all([m.shape for m in maps] == [(3, n, n) for n in BATCH.lengths] for maps in found.attention.values())
        assert sorted(found.attention) == sorted(request.get("attention", ()))


def test_asking_never_changes_the_numbers(bert: Bert) -> None:
    everything = bert(BATCH, hidden=range(5), attention=range(1, 5))
    assert torch.equal(everything.last, bert(BATCH).last)
    assert torch.equal(everything.hidden[2], bert(BATCH, hidden=[2]).last)
    for one, other in zip(everything.attention[3], bert(BATCH, attention=[-2]).attention[3], strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("layer", [5, -6, 99])
def test_a_layer_that_is_not_there_is_refused(bert: Bert, layer: int) -> None:
    with pytest.raises(HeedfulError, match=r"0 … 4"):
        bert(BATCH, hidden=[layer])
    with pytest.raises(HeedfulError, match=r"0 … 4"):
        bert(BATCH, attention=[layer])


def test_the_embeddings_have_no_attention_map(bert: Bert) -> None:
    with pytest.raises(HeedfulError, match="layer 0"):
        bert(BATCH, attention=[0])


def test_a_model_without_pooler_says_so() -> None:
    with pytest.raises(HeedfulError, match="no pooler"):
        Bert(CONFIG, pooler=False).pool(torch.zeros(1, 12))


class Sentiment(nn.Module):
    """A user's own model around the encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = Bert(CONFIG)
        self.score = nn.Linear(CONFIG.hidden_size, 2)

    def forward(self, batch):  # type: ignore[no-untyped-def]
        states = self.bert(batch).last
        starts = torch.tensor(batch.lengths).cumsum(0) - torch.tensor(batch.lengths)
        return self.score(self.bert.pool(states[starts]))


def test_the_encoder_trains_inside_a_users_own_module() -> None:
    torch.manual_seed(0)
    model = Sentiment().train()
    labels = torch.tensor([0, 1, 0, 1])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(30):
        loss = nn.functional.cross_entropy(model(BATCH), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in model.parameters())
    assert losses[-1] < losses[0] / 2
    assert (model.eval()(BATCH).argmax(-1) == labels).all()


def test_dropout_acts_in_training_only(bert: Bert) -> None:
    assert torch.equal(bert(BATCH).last, bert(BATCH).last)
    bert.train()
    assert not torch.equal(bert(BATCH).last, bert(BATCH).last)


def test_a_seed_decides_the_start() -> None:
    states = []
    for seed in (1, 1, 2):
        model = BertForPretraining(CONFIG)
        initialise(model, CONFIG, seed)
        states.append(model.state_dict())
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())
    assert not torch.equal(states[0]["nsp.weight"], states[2]["nsp.weight"])
    assert states[0]["encoder.embeddings.token.weight"].std().item() == pytest.approx(0.02, rel=0.15)


def test_positions_start_with_neighbours_alike_and_of_the_same_spread() -> None:
    model = Bert(CONFIG)
    initialise(model, CONFIG, seed=0)
    table = model.embeddings.position.weight.detach()
    assert table.square().mean().sqrt().item() == pytest.approx(CONFIG.initializer_range, rel=1e-3)
    near = torch.cosine_similarity(table[:-1], table[1:])
    assert (near > torch.cosine_similarity(table[:1], table[-1:])).all()


@pytest.mark.parametrize(("size", "millions"), [("base", 110), ("large", 340)])
def test_the_published_sizes_have_the_published_number_of_parameters(size: str, millions: int) -> None:
    with torch.device("meta"):
        model = BertForPretraining(sized(size, 30522))
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.02)


def test_every_size_has_heads_of_64_and_a_feed_forward_of_four_widths() -> None:
    for size in TRANSFORMER_SIZES:
        config = sized(size, 100)
        assert config.hidden_size == 64 * config.num_attention_heads
        assert config.intermediate_size == 4 * config.hidden_size


def test_impossible_shapes_are_refused() -> None:
    with pytest.raises(HeedfulError, match="multiple"):
        BertConfig(hidden_size=10, num_attention_heads=3)
    with pytest.raises(HeedfulError, match="snake"):
        BertConfig(hidden_act="snake")
    with pytest.raises(HeedfulError, match="gigantic"):
        sized("gigantic", 100)
