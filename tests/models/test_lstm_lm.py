"""The LSTM language model never sees the future, and carrying its state is the same as reading on."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.lstm_lm import LstmConfig, LstmForPretraining, initialise, sized

SEQUENCES = [[5, 9, 30, 4, 17], [7, 8, 9], [1, 2, 3], [40]]


@pytest.fixture
def model() -> LstmForPretraining:
    config = LstmConfig(50, width=12, layers=2, dropout=0.0)
    made = LstmForPretraining(config)
    initialise(made, config, seed=1)
    return made.eval()


def test_it_is_torchs_lstm(model: LstmForPretraining) -> None:
    whole = nn.LSTM(12, 12, 2)
    for number, cell in enumerate(model.encoder.cells):
        for name, parameter in cell.named_parameters():
            whole.get_parameter(name.replace("l0", f"l{number}")).data.copy_(parameter)
    with torch.no_grad():
        states, start = model.encoder(flat_batch(SEQUENCES)).last, 0
        for ids in SEQUENCES:
            expected, _ = whole(model.encoder.token_matrix[ids][:, None])
            torch.testing.assert_close(states[start : start + len(ids)], expected[:, 0])
            start += len(ids)


def test_no_state_depends_on_a_later_token(model: LstmForPretraining) -> None:
    vectors: list[torch.Tensor] = []

    def keep(module: object, inputs: object, output: torch.Tensor) -> None:
        output.retain_grad()
        vectors.append(output)

    model.encoder.embeddings.token.register_forward_hook(keep)
    sequence = torch.tensor([number for number, ids in enumerate(SEQUENCES) for _ in ids])
    for row in range(len(sequence)):
        vectors.clear()
        model.logits(model.encoder(flat_batch(SEQUENCES)).last)[row].square().sum().backward()  # type: ignore[no-untyped-call]
        touched = vectors[0].grad.abs().sum(-1) > 0  # type: ignore[union-attr]
        assert torch.equal(touched, (sequence == sequence[row]) & (torch.arange(len(sequence)) <= row))


@pytest.mark.parametrize("lengths", [(3, 3), (4, 2)])
@torch.no_grad()
def test_the_memory_goes_on_where_the_batch_before_ended(model: LstmForPretraining, lengths: tuple[int, int]) -> None:
    texts = [[5, 9, 30, 4, 17, 6], [7, 8, 9, 10, 11, 12]]
    whole = model.encoder(flat_batch(texts)).last.view(2, 6, -1)
    first = model.encoder(flat_batch([ids[:n] for ids, n in zip(texts, lengths, strict=True)]))
    rest = [ids[n:] for ids, n in zip(texts, lengths, strict=True)]
    then = model.encoder(flat_batch(rest), memory=first.memory).last.split([len(ids) for ids in rest])
    for text, part, n in zip(whole, then, lengths, strict=True):
        torch.testing.assert_close(part, text[n:])


@torch.no_grad()
def test_step_by_step_is_the_same_as_at_once(model: LstmForPretraining) -> None:
    rng = torch.Generator().manual_seed(3)
    state = model.start(flat_batch([ids[:-1] for ids in SEQUENCES]), 3, longest=6)
    tokens, said = torch.tensor([ids[-1:] for ids in SEQUENCES]), [[ids] for ids in SEQUENCES]
    for step in range(4):
        logits, state = model.step(tokens, state)
        for b, texts in enumerate(said):
            for k, text in enumerate(texts):
                expected = model.logits(model.encoder(flat_batch([text])).last[-1])
                torch.testing.assert_close(logits[b, k], expected, rtol=1e-4, atol=1e-5)
        parents = torch.randint(logits.shape[1], (len(said), 3), generator=rng)
        state, tokens = state.reorder(parents), torch.randint(50, (len(said), 3), generator=rng)
        said = [[[*said[b][parents[b, k]], int(tokens[b, k])] for k in range(3)] for b in range(len(said))]
        if step == 2:
            state, tokens, said = state.keep(torch.tensor([0, 3])), tokens[[0, 3]], [said[0], said[3]]


def test_shapes_that_make_no_sense() -> None:
    assert sized("mini", 10) == LstmConfig(10, 256, 2)
    with pytest.raises(HeedfulError, match="4 LSTM layers"):
        LstmConfig(10, layers=4)
    with pytest.raises(HeedfulError, match=r"no LSTM size is called 'base'(.|\n)*mini"):
        sized("base", 10)
