"""GPT never sees the future, and what it writes step by step is what it reads at once."""

from __future__ import annotations

import pytest
import torch

from heedful.checkpoints.gpt_family import GPT
from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.gpt import SIZES, GptConfig, GptForPretraining, initialise, sized
from tests.gpt_folder import random_gpt

SHAPE = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}
SEQUENCES = [[5, 9, 30, 4, 17], [7, 8, 9], [1, 2, 3], [40]]


def test_no_state_depends_on_a_later_token() -> None:
    model = random_gpt(50, **SHAPE).eval()
    batch = flat_batch(SEQUENCES)
    vectors: list[torch.Tensor] = []

    def keep(module: object, inputs: object, output: torch.Tensor) -> None:
        output.retain_grad()
        vectors.append(output)

    model.encoder.embeddings.token.register_forward_hook(keep)
    sequence = torch.tensor([number for number, ids in enumerate(SEQUENCES) for _ in ids])
    for row in range(len(sequence)):
        vectors.clear()
        model.zero_grad()
        model.logits(model.encoder(batch).last)[row].square().sum().backward()  # type: ignore[no-untyped-call]
        touched = vectors[0].grad.abs().sum(-1) > 0  # type: ignore[union-attr]
        allowed = (sequence == sequence[row]) & (torch.arange(len(sequence)) <= row)
        assert torch.equal(touched, allowed)


@pytest.mark.parametrize("hypotheses", [1, 3])
@torch.no_grad()
def test_step_by_step_is_the_same_as_at_once(hypotheses: int) -> None:
    model = random_gpt(50, **SHAPE).eval()
    rng = torch.Generator().manual_seed(3)
    state = model.start(flat_batch([ids[:-1] for ids in SEQUENCES]), hypotheses, longest=6)
    tokens = torch.tensor([ids[-1:] for ids in SEQUENCES])
    said = [[ids] for ids in SEQUENCES]
    rows = list(range(len(SEQUENCES)))
    for step in range(5):
        logits, state = model.step(tokens, state)
        for b, texts in enumerate(said):
            for k, text in enumerate(texts):
                expected = model.logits(model.encoder(flat_batch([text])).last[-1])
                torch.testing.assert_close(logits[b, k], expected, rtol=1e-4, atol=1e-4)
        parents = torch.randint(logits.shape[1], (len(rows), hypotheses), generator=rng)
        state = state.reorder(parents)
        tokens = torch.randint(50, (len(rows), hypotheses), generator=rng)
        said = [[[*said[b][parents[b, k]], int(tokens[b, k])] for k in range(hypotheses)] for b in range(len(rows))]
        if step == 2:  # two of the texts are done
            rows = [0, 2]
            state, tokens, said = state.keep(torch.tensor(rows)), tokens[rows], [said[b] for b in rows]


def test_prompts_of_one_token_need_nothing_to_be_read() -> None:
    model = random_gpt(50, **SHAPE).eval()
    with torch.no_grad():
        logits, _ = model.step(torch.tensor([[4], [6]]), model.start(flat_batch([[], []]), 1, 3))
        expected = model.logits(model.encoder(flat_batch([[4], [6]])).last)
    torch.testing.assert_close(logits[:, 0], expected, rtol=1e-5, atol=1e-5)


def test_sizes_and_shapes_that_make_no_sense() -> None:
    assert {"nano", "mini", "gpt2"} <= set(SIZES)
    published = GptForPretraining(sized("gpt2", 50257))
    assert sum(p.numel() for p in published.parameters()) == 124_439_808
    with pytest.raises(HeedfulError, match=r"no GPT size is called 'huge'(.|\n)*nano"):
        sized("huge", 100)
    with pytest.raises(HeedfulError, match="multiple of n_head"):
        GptConfig(n_embd=10, n_head=3)
    with pytest.raises(HeedfulError, match="activation_function 'relu'"):
        GptConfig(activation_function="relu")
    with pytest.raises(HeedfulError, match="n_layer is 0"):
        GptConfig(n_layer=0)


def test_a_text_longer_than_the_positions_is_refused() -> None:
    with pytest.raises(HeedfulError, match="more than the model's 32 positions"):
        random_gpt(50, **SHAPE).encoder(flat_batch([[1] * 33]))


def test_the_start_is_the_same_for_a_seed_and_smaller_where_layers_add_up() -> None:
    config = GptConfig(vocab_size=50, n_embd=64, n_layer=8, n_head=2, n_positions=32)
    one, other = GptForPretraining(config), GptForPretraining(config)
    for model in (one, other):
        initialise(model, config, seed=5)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    layer = one.encoder.blocks[0]
    assert float(layer.down.weight.detach().std()) == pytest.approx(0.02 / 4, rel=0.05)
    assert float(layer.up.weight.detach().std()) == pytest.approx(0.02, rel=0.05)


def test_the_family_is_known_by_its_shorter_name() -> None:
    from heedful.checkpoints.families import family_named

    assert family_named("gpt") is GPT and family_named("gpt2") is GPT
