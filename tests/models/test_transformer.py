"""The Transformer: torch's own layers with the same weights as the judge, and what each position can and cannot see."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from heedful.config import from_mapping, to_mapping
from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.bert import Bert, BertConfig
from heedful.models.transformer import (
    SIZES,
    Transformer,
    TransformerConfig,
    initialise_transformer,
    sized,
    with_encoder,
)
from heedful.nn.attention import padding_visible
from heedful.nn.packed_linear import can_pack
from heedful.nn.positions import sinusoids
from heedful.nn.ragged import pad, unpad
from heedful.nn.transformer_layers import DecoderLayer, EncoderLayer
from heedful.schema import Bitext

CONFIG = TransformerConfig(
    source_vocab_size=30, target_vocab_size=30, encoder_layers=2, decoder_layers=3, width=16, heads=4, inner=24,
    max_length=20,
)  # fmt: skip
SOURCES = [[2, 7, 9, 8, 11, 3], [2, 9, 9, 9, 3], [2, 5, 12, 6, 3], [2, 3], [2, 20, 21, 22, 23, 24, 25, 3]]
TARGETS = [[2, 14, 13, 3], [2, 15, 16, 17, 18, 19, 3], [2, 3], [2, 29, 28, 29, 3], [2, 10, 9, 8, 7, 3]]
BERT = BertConfig(
    vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
    max_position_embeddings=9,
)  # fmt: skip


def bitext(sources: list[list[int]] = SOURCES, targets: list[list[int]] = TARGETS) -> Bitext:
    labels = torch.tensor([label for ids in targets for label in ids[1:]])
    return Bitext(flat_batch(sources), flat_batch([ids[:-1] for ids in targets]), labels)


def randomised(config: TransformerConfig, seed: int = 2) -> Transformer:
    """A model with no zero bias and no norm of one, which would hide mistakes, that tells its inputs well apart."""
    model = Transformer(config).eval()
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if name.endswith("norm.weight") else 0.0, 0.3, generator=rng)
    return model


@pytest.fixture(params=[False, True], ids=["post-norm", "pre-norm"])
def model(request: pytest.FixtureRequest) -> Transformer:
    return randomised(replace(CONFIG, pre_norm=request.param))


def load(theirs: nn.Module, ours: dict[str, Tensor]) -> None:
    """Fill a torch layer; what is not given a value is an error."""
    theirs.load_state_dict({name: tensor.detach() for name, tensor in ours.items()}, strict=True)


def common(layer: EncoderLayer | DecoderLayer) -> dict[str, Tensor]:
    attention, feed = layer.attention, layer.feed_forward
    return {
        "self_attn.in_proj_weight": attention.qkv.weight, "self_attn.in_proj_bias": attention.qkv.bias,
        "self_attn.out_proj.weight": attention.out.weight, "self_attn.out_proj.bias": attention.out.bias,
        "linear1.weight": feed.up.weight, "linear1.bias": feed.up.bias,
        "linear2.weight": feed.down.weight, "linear2.bias": feed.down.bias,
        "norm1.weight": layer.attention_residual.norm.weight, "norm1.bias": layer.attention_residual.norm.bias,
    }  # fmt: skip


def torch_encoder(model: Transformer) -> nn.TransformerEncoder:
    config = model.config
    like = nn.TransformerEncoderLayer(
        config.width, config.heads, config.inner, 0.0, batch_first=True, norm_first=config.pre_norm
    )
    norm = nn.LayerNorm(config.width) if config.pre_norm else None
    theirs = nn.TransformerEncoder(like, config.encoder_layers, norm, enable_nested_tensor=False)
    for layer, ours in zip(theirs.layers, model.encoder.layers, strict=True):  # type: ignore[arg-type]
        last = ours.feed_forward_residual.norm
        load(layer, common(ours) | {"norm2.weight": last.weight, "norm2.bias": last.bias})
    if theirs.norm is not None:
        load(theirs.norm, dict(model.encoder.norm.named_parameters()))  # type: ignore[union-attr]
    return theirs.train()  # without dropout nothing is by chance, and torch takes no short cut


def torch_decoder(model: Transformer) -> nn.TransformerDecoder:
    config = model.config
    like = nn.TransformerDecoderLayer(
        config.width, config.heads, config.inner, 0.0, batch_first=True, norm_first=config.pre_norm
    )
    norm = nn.LayerNorm(config.width) if config.pre_norm else None
    theirs = nn.TransformerDecoder(like, config.decoder_layers, norm)
    for layer, ours in zip(theirs.layers, model.decoder, strict=True):
        cross, second, third = ours.cross, ours.cross_residual.norm, ours.feed_forward_residual.norm
        values = common(ours) | {
            "multihead_attn.in_proj_weight": torch.cat([cross.query.weight, cross.memory.weight]),
            "multihead_attn.in_proj_bias": torch.cat([cross.query.bias, cross.memory.bias]),
            "multihead_attn.out_proj.weight": cross.out.weight, "multihead_attn.out_proj.bias": cross.out.bias,
            "norm2.weight": second.weight, "norm2.bias": second.bias,
            "norm3.weight": third.weight, "norm3.bias": third.bias,
        }  # fmt: skip
        load(layer, values)
    if theirs.norm is not None:
        load(theirs.norm, dict(model.decoder.norm.named_parameters()))
    return theirs.train()


def embedded(table: Tensor, sequences: list[list[int]]) -> Tensor:
    """(B, longest, D): √D · token + position, padded, written out."""
    rows = [table[torch.tensor(ids)] * table.shape[1] ** 0.5 + sinusoids(len(ids), table.shape[1]) for ids in sequences]
    return pad_sequence(rows, batch_first=True)


def by_torch(model: Transformer, encoder: nn.TransformerEncoder, decoder: nn.TransformerDecoder) -> Tensor:
    """The states of torch's layers at all real target positions, (M, D)."""
    table = model.target.token.weight
    inputs = [ids[:-1] for ids in TARGETS]
    hidden = ~padding_visible([len(ids) for ids in SOURCES])[:, 0, 0]
    memory = encoder(embedded(table, SOURCES), src_key_padding_mask=hidden)
    target = embedded(table, inputs)
    future = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
    states = decoder(target, memory, tgt_mask=future, memory_key_padding_mask=hidden)
    return torch.cat([row[: len(ids)] for row, ids in zip(states, inputs, strict=True)])


def test_states_are_those_of_torch(model: Transformer) -> None:
    expected = by_torch(model, torch_encoder(model), torch_decoder(model))
    torch.testing.assert_close(model(bitext()), expected, rtol=1e-5, atol=1e-5)


def test_gradients_are_those_of_torch(model: Transformer) -> None:
    encoder, decoder = torch_encoder(model), torch_decoder(model)
    weights = torch.randn(len(bitext().labels), CONFIG.width, generator=torch.Generator().manual_seed(1))
    (by_torch(model, encoder, decoder) * weights).sum().backward()
    expected = model.target.token.weight.grad
    assert expected is not None
    model.zero_grad()
    (model(bitext()) * weights).sum().backward()
    found = model.target.token.weight.grad
    assert found is not None
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    for layer, ours in zip(decoder.layers, model.decoder, strict=True):
        theirs = layer.multihead_attn.in_proj_weight.grad  # type: ignore[union-attr]
        both = [ours.cross.query.weight.grad, ours.cross.memory.weight.grad]
        torch.testing.assert_close(torch.cat(both), theirs, rtol=1e-4, atol=1e-4)  # type: ignore[arg-type]


def test_a_sentence_is_the_same_in_any_company(model: Transformer) -> None:
    together = model(bitext()).split([len(ids) - 1 for ids in TARGETS])
    for states, source, target in zip(together, SOURCES, TARGETS, strict=True):
        torch.testing.assert_close(states, model(bitext([source], [target])), rtol=1e-5, atol=1e-5)


def test_the_future_does_not_reach_the_past(model: Transformer) -> None:
    before = model(bitext([SOURCES[0]], [[2, 5, 6, 7, 8, 3]]))
    after = model(bitext([SOURCES[0]], [[2, 5, 6, 9, 4, 3]]))
    torch.testing.assert_close(before[:3], after[:3], rtol=1e-6, atol=1e-6)
    assert (before[3:] - after[3:]).abs().amax(-1).min() > 0.05


def test_every_source_token_reaches_every_target_position(model: Transformer) -> None:
    before = model(bitext([[2, 7, 8, 3]], [[2, 5, 6, 3]]))
    after = model(bitext([[2, 7, 9, 3]], [[2, 5, 6, 3]]))
    assert (before - after).abs().amax(-1).min() > 0.01


def test_without_positions_equal_words_are_equal() -> None:
    source = flat_batch([[9, 7, 9, 8], [9, 9]])
    model = randomised(CONFIG)
    states = model.source_states(source)
    assert not torch.allclose(states[0], states[2], atol=1e-3)
    model.target.position.table.zero_()
    states = model.source_states(source)
    torch.testing.assert_close(states[0], states[2], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(states[4], states[5], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(states[0], states[1], atol=1e-3)


def test_learned_positions_begin_different_and_are_trained() -> None:
    model = Transformer(replace(CONFIG, positions="learned"))
    initialise_transformer(model, seed=0)
    assert "target.position.table" in dict(model.named_parameters())
    (model(bitext()) * torch.arange(CONFIG.width)).sum().backward()
    gradient = model.target.position.table.grad
    assert gradient is not None
    assert [bool(row.any()) for row in gradient] == [True] * 8 + [False] * 12
    assert len(model.target.position.table.detach().unique(dim=0)) == CONFIG.max_length


def teacher_forced(model: Transformer, source: list[int], said: list[int]) -> Tensor:
    """Logits after the last of the symbols `said`, without any cache."""
    return model.logits(model(bitext([source], [[*said, 0]]))[-1])


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_steps_are_the_teacher_forced_pass(model: Transformer, positions: str) -> None:
    model = randomised(replace(model.config, positions=positions))
    with torch.inference_mode():
        given = pad(bitext().target.ids, bitext().target.lengths)
        state = model.start(model.encode(bitext().source), beam=1, longest=given.shape[1])
        found = []
        for tokens in given.unbind(1):
            logits, state = model.step(tokens[:, None], state)
            found.append(logits[:, 0])
        steps = unpad(torch.stack(found, dim=1), bitext().target.lengths)
        torch.testing.assert_close(steps, model.logits(model(bitext())), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_beam_that_is_reordered_and_thinned_out_is_uncached_decoding(
    model: Transformer, beam: int, seed: int
) -> None:
    """Hypotheses are kept beside the state as plain lists of symbols and computed anew after each step."""
    rng = torch.Generator().manual_seed(seed)
    sources, longest = list(SOURCES), 12
    said: list[list[list[int]]] = [[[] for _ in range(beam)] for _ in sources]
    with torch.inference_mode():
        state = model.start(model.encode(flat_batch(sources)), beam, longest)
        for time in range(longest):
            tokens = torch.randint(4, 30, (len(sources), beam), generator=rng)
            said = [
                [[*old, new] for old, new in zip(olds, news, strict=True)]
                for olds, news in zip(said, tokens.tolist(), strict=True)
            ]
            logits, state = model.step(tokens, state)
            expected = [
                torch.stack([teacher_forced(model, source, one) for one in hypotheses])
                for source, hypotheses in zip(sources, said, strict=True)
            ]
            torch.testing.assert_close(logits, torch.stack(expected), rtol=1e-5, atol=1e-5)
            if time in (1, 4):
                kept = torch.randperm(len(sources), generator=rng)[:-1]
                sources, said = [sources[i] for i in kept], [said[i] for i in kept]
                state = state.keep(kept)
            parents = torch.randint(beam, (len(sources), beam), generator=rng)
            said = [[olds[k] for k in row] for olds, row in zip(said, parents.tolist(), strict=True)]
            state = state.reorder(parents)
    assert beam < 5 or state.filled < beam * longest  # what has died out takes no room


def test_steps_end_where_they_were_said_to(model: Transformer) -> None:
    with torch.inference_mode():
        state = model.start(model.encode(flat_batch([[2, 3]])), beam=2, longest=1)
        _, state = model.step(torch.tensor([[2, 2]]), state)
        with pytest.raises(RuntimeError):
            model.step(torch.tensor([[2, 2]]), state)


def test_alignments_are_weights_over_the_source_of_each_sentence(model: Transformer) -> None:
    for layer in (1, 2, -1):
        heads = [model.alignments(bitext(), layer, head) for head in range(CONFIG.heads)]
        for *by_head, mean, source, target in zip(
            *heads, model.alignments(bitext(), layer), SOURCES, TARGETS, strict=True
        ):
            assert mean.shape == (len(target) - 1, len(source))
            torch.testing.assert_close(mean.sum(-1), torch.ones(len(target) - 1))
            torch.testing.assert_close(torch.stack(by_head).mean(0), mean)


def test_alignments_are_those_that_are_mixed_by(model: Transformer) -> None:
    """The second layer's output, rebuilt from its alignments, is what goes into the third."""
    seen: list[Tensor] = []
    second = list(model.decoder)[1].cross
    second.out.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    one = bitext([SOURCES[0]], [TARGETS[1]])
    model(one)
    values = model.encode(one.source).layers[1].values[0]  # (H, S, d)
    mixed = [model.alignments(one, 2, head)[0] @ values[head] for head in range(CONFIG.heads)]
    torch.testing.assert_close(seen[0], torch.cat(mixed, dim=-1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("layer", "head"), [(0, None), (4, None), (-4, None), (1, 4), (1, -1)])
def test_alignments_that_are_not_there_are_refused(layer: int, head: int | None) -> None:
    with pytest.raises(HeedfulError, match=r"no layer|no head"):
        randomised(CONFIG).alignments(bitext(), layer, head)


@pytest.mark.parametrize("rates", [{"dropout": 0.5}, {"dropout": 0.0, "attention_dropout": 0.5}])
def test_dropout_acts_in_training_only(rates: dict[str, float]) -> None:
    model = randomised(replace(CONFIG, **rates))  # type: ignore[arg-type]
    assert torch.equal(model(bitext()), model(bitext()))
    model.train()
    assert not torch.equal(model(bitext()), model(bitext()))


def test_without_dropout_training_computes_the_same() -> None:
    model = randomised(replace(CONFIG, dropout=0.0))
    assert torch.equal(model(bitext()), model.train()(bitext()))


def test_all_weights_are_trained_and_pairs_are_learned() -> None:
    model = Transformer(replace(CONFIG, dropout=0.0)).train()
    initialise_transformer(model, seed=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        loss = F.cross_entropy(model.logits(model(bitext())), bitext().labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in model.parameters())
    assert (model.logits(model(bitext())).argmax(-1) == bitext().labels).all()


def test_sharing_is_one_table() -> None:
    shared, separate = Transformer(CONFIG), Transformer(replace(CONFIG, share=False, source_vocab_size=50))
    assert shared.source is None and separate.source is not None
    sizes = [sum(p.numel() for p in model.parameters()) for model in (shared, separate)]
    assert sizes[1] - sizes[0] == 50 * CONFIG.width
    assert separate.logits(separate(bitext([[2, 49, 3]], [[2, 29, 3]]))).shape == (2, 30)


@pytest.mark.processor
@pytest.mark.skipif(not can_pack(), reason="needs oneDNN: it packs the weights")
@pytest.mark.parametrize("bert", [False, True])
def test_a_packed_model_says_the_same(bert: bool) -> None:
    model = randomised(with_encoder(CONFIG, BERT) if bert else CONFIG)
    with torch.inference_mode():
        expected = model.logits(model(bitext()))
        model.pack()
        torch.testing.assert_close(model.logits(model(bitext())), expected, rtol=1e-4, atol=1e-4)
    assert not [module for module in model.modules() if isinstance(module, nn.Linear)]


def test_a_bert_can_be_the_encoder() -> None:
    config = with_encoder(CONFIG, BERT)
    bert = Bert(BERT).eval()
    model = Transformer(config, bert).eval()
    before = {name: tensor.clone() for name, tensor in bert.state_dict().items()}
    initialise_transformer(model, seed=0)
    assert all(torch.equal(tensor, before[name]) for name, tensor in bert.state_dict().items())
    assert bert.pooler is None and model.source is None
    torch.testing.assert_close(model.source_states(bitext().source), bert(bitext().source).last)
    model(bitext()).square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    fresh = Transformer(config)
    fresh.load_state_dict(model.state_dict())
    torch.testing.assert_close(fresh.eval()(bitext()), model(bitext()))


def test_a_bert_of_another_shape_is_refused() -> None:
    with pytest.raises(HeedfulError, match="shape"):
        Transformer(with_encoder(CONFIG, BERT), Bert(replace(BERT, num_hidden_layers=1)))
    with pytest.raises(HeedfulError, match="shape"):
        Transformer(CONFIG, Bert(BERT))
    with pytest.raises(HeedfulError, match="with_encoder"):
        replace(with_encoder(CONFIG, BERT), encoder_layers=2)


@pytest.mark.parametrize("config", [CONFIG, replace(CONFIG, pre_norm=True), with_encoder(CONFIG, BERT)])
def test_a_config_is_a_mapping_and_back(config: TransformerConfig) -> None:
    assert from_mapping(TransformerConfig, to_mapping(config), "here") == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 3}, "multiple"),
        ({"heads": 0}, "heads is 0"),
        ({"decoder_layers": 0}, "at least 1"),
        ({"encoder_layers": 0}, "at least 1"),
        ({"dropout": 1.0}, "dropout"),
        ({"attention_dropout": -0.1}, "attention_dropout"),
        ({"positions": "rotary"}, "rotary"),
        ({"source_vocab_size": 31}, "shared"),
    ],
)
def test_impossible_shapes_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(HeedfulError, match=message):
        replace(CONFIG, **changes)  # type: ignore[arg-type]


def test_what_is_longer_than_the_model_is_refused() -> None:
    model = randomised(CONFIG)
    long = [2, *[7] * 19, 3]
    with pytest.raises(HeedfulError, match="21 tokens are more than the model's 20"):
        model.encode(flat_batch([long]))
    with pytest.raises(HeedfulError, match="21 tokens"):
        model(bitext([[2, 3]], [[*long, 3]]))
    with pytest.raises(HeedfulError, match="21 symbols"):
        model.start(model.encode(flat_batch([[2, 3]])), beam=1, longest=21)
    with pytest.raises(HeedfulError, match="10 tokens are more than the model's 9"):
        randomised(with_encoder(CONFIG, BERT)).encode(flat_batch([[2] * 10]))


def test_a_seed_decides_the_start() -> None:
    states = []
    for seed in (1, 1, 2):
        model = Transformer(replace(CONFIG, width=64))
        initialise_transformer(model, seed)
        states.append(model.state_dict())
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())
    table = states[0]["target.token.weight"]
    assert not torch.equal(table, states[2]["target.token.weight"])
    assert table.std().item() == pytest.approx(64**-0.5, rel=0.1)
    assert "target.position.table" not in states[0]


@pytest.mark.parametrize(("size", "millions"), [("base", 65), ("big", 213)])
def test_the_paper_sizes_have_the_published_number_of_parameters(size: str, millions: int) -> None:
    with torch.device("meta"):
        model = Transformer(sized(size, 37000, 37000))
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.035)


def test_every_size_can_be_had() -> None:
    assert all(sized(size, 100, 200, share=False).width == SIZES[size][1] for size in SIZES)
    with pytest.raises(HeedfulError, match="gigantic"):
        sized("gigantic", 100, 100)
