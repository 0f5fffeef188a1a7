"""XLNet against `transformers`: the same states, permutation logits and memory, and folders that go both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from heedful.checkpoints.encoder_folder import load_encoder, load_for_pretraining, save_model
from heedful.checkpoints.folder import read_folder
from heedful.data.batching import flat_batch
from heedful.models.xlnet import XlnetConfig, initialise
from heedful.models.xlnet_lm import XlnetForPretraining
from heedful.schema import Batch

SHAPE: dict[str, Any] = {"vocab_size": 50, "d_model": 24, "n_layer": 3, "n_head": 3, "d_inner": 40}
COUNT, LENGTH = 4, 13


def stirred(model: torch.nn.Module) -> torch.nn.Module:
    """The model with random weights; norms stay about one, so that differences come through."""
    rng = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(float(name.endswith("norm.weight")), 0.2, generator=rng)
    return model.eval()


@pytest.fixture
def theirs() -> transformers.XLNetLMHeadModel:
    return stirred(transformers.XLNetLMHeadModel(transformers.XLNetConfig(**SHAPE, mem_len=None)))


@pytest.fixture
def ours(theirs: transformers.XLNetLMHeadModel, tmp_path: Path) -> XlnetForPretraining:
    theirs.save_pretrained(tmp_path / "theirs")
    model = load_for_pretraining(read_folder(tmp_path / "theirs"), seed=0)
    assert isinstance(model, XlnetForPretraining)
    return model


def tokens(seed: int, segments: bool = True, length: int = LENGTH) -> tuple[Tensor, Tensor]:
    """Ids and segments, (B, T)."""
    rng = torch.Generator().manual_seed(seed)
    ids = torch.randint(50, (COUNT, length), generator=rng)
    kinds = torch.randint(3, (COUNT, length), generator=rng)
    return ids, kinds if segments else torch.zeros_like(kinds)


def batch_of(ids: Tensor, segments: Tensor) -> Batch:
    return flat_batch(ids.tolist(), segments.tolist())


def order_of(seed: int, predicted: int, length: int = LENGTH) -> Tensor:
    """A turn for the last tokens of a random order, -1 for the others, (B, T)."""
    rng = torch.Generator().manual_seed(seed)
    turns = torch.stack([torch.randperm(length, generator=rng) for _ in range(COUNT)])
    return torch.where(turns >= length - predicted, turns, -1)


def masks_of(order: Tensor) -> tuple[Tensor, Tensor]:
    """Their perm_mask, 1 where i must not see j, and target_mapping, from our order."""
    later = order[:, None, :] >= order.clamp(min=0)[:, :, None]
    targets = [row.nonzero()[:, 0] for row in order >= 0]
    mapping = torch.stack([torch.nn.functional.one_hot(places, order.shape[1]) for places in targets])
    return later.float(), mapping.float()


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("segments", [False, True])
@torch.no_grad()
def test_every_state_and_map_and_the_memory(
    ours: XlnetForPretraining, theirs: transformers.XLNetLMHeadModel, segments: bool
) -> None:
    memory, mems = None, None
    for step in range(3):  # the text goes on twice, from all that was before
        ids, kinds = tokens(step, segments, LENGTH + step)
        expected = theirs(
            ids, token_type_ids=kinds, mems=mems, output_hidden_states=True, output_attentions=True, use_mems=True
        )
        found = ours.encoder(batch_of(ids, kinds), range(4), range(1, 4), memory)
        for number, state in found.hidden.items():
            close(state, expected.hidden_states[number].flatten(0, 1))
        for number, maps in found.attention.items():
            close(torch.stack(maps), expected.attentions[number - 1])
        close(ours.logits(found.last), expected.logits.flatten(0, 1))
        memory, mems = found.memory, expected.mems
        for own, other in zip(memory or (), mems, strict=True):
            close(own.transpose(0, 1), other)


@torch.no_grad()
def test_texts_of_unlike_length_are_as_each_by_itself(
    ours: XlnetForPretraining, theirs: transformers.XLNetLMHeadModel
) -> None:
    lengths = (9, 9, 4, 1)
    rng = torch.Generator().manual_seed(0)
    ids, segments = ([torch.randint(top, (n,), generator=rng).tolist() for n in lengths] for top in (50, 3))
    batch = flat_batch(ids, segments)
    expected = [
        theirs(torch.tensor([i]), token_type_ids=torch.tensor([s])).logits[0]
        for i, s in zip(ids, segments, strict=True)
    ]
    close(ours.logits(ours.encoder(batch).last), torch.cat(expected))
    rows = torch.tensor([22, 3, 8])
    close(ours.logits(ours.encoder.states_at(batch, rows)), torch.cat(expected)[rows])


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("predicted", [1, 3, LENGTH - 1])
@torch.no_grad()
def test_permutation_logits_with_and_without_memory(
    ours: XlnetForPretraining, theirs: transformers.XLNetLMHeadModel, predicted: int, segments: bool
) -> None:
    memory, mems = None, None
    for step in range(2):
        ids, kinds = tokens(step, segments)
        order = order_of(step, predicted)
        later, mapping = masks_of(order)
        expected = theirs(ids, token_type_ids=kinds, perm_mask=later, target_mapping=mapping, mems=mems, use_mems=True)
        targets = (order.flatten() >= 0).nonzero()[:, 0]
        found = ours.encoder.predictions(batch_of(ids, kinds), order.flatten(), targets, memory)
        close(ours.logits(found.last), expected.logits.flatten(0, 1))
        memory, mems = found.memory, expected.mems
        for own, other in zip(memory or (), mems, strict=True):
            close(own.transpose(0, 1), other)


@pytest.mark.parametrize("settings", [{"mem_len": 5}, {"mem_len": 8, "reuse_len": 6}, {"reuse_len": 4}])
@torch.no_grad()
def test_memory_is_as_long_as_the_config_says(settings: dict[str, int], tmp_path: Path) -> None:
    theirs = stirred(transformers.XLNetModel(transformers.XLNetConfig(**SHAPE, **{"mem_len": None, **settings})))
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load_encoder(read_folder(tmp_path / "theirs"))
    memory, mems = None, None
    for step in range(3):
        ids, kinds = tokens(step)
        expected = theirs(ids, token_type_ids=kinds, mems=mems, use_mems=True)
        found = ours(batch_of(ids, kinds), memory=memory)
        close(found.last, expected.last_hidden_state.flatten(0, 1))
        memory, mems = found.memory, expected.mems
        assert memory is not None and memory[0].shape[1] == mems[0].shape[0]


@torch.no_grad()
def test_a_folder_written_here_gives_the_same_logits_there(tmp_path: Path) -> None:
    config = XlnetConfig(**SHAPE)
    model = XlnetForPretraining(config)
    initialise(model, config, seed=5)
    stirred(model)
    save_model(model, tmp_path / "ours", None)
    theirs, info = transformers.XLNetLMHeadModel.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
    ids, kinds = tokens(0)
    close(
        model.logits(model.encoder(batch_of(ids, kinds)).last),
        theirs.eval()(ids, token_type_ids=kinds).logits.flatten(0, 1),
    )
    save_model(model.encoder, tmp_path / "alone", None)
    alone, info = transformers.XLNetModel.from_pretrained(tmp_path / "alone", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert torch.equal(load_encoder(read_folder(tmp_path / "alone")).token_matrix, alone.word_embedding.weight)


def test_gradients_are_theirs(ours: XlnetForPretraining, theirs: transformers.XLNetLMHeadModel) -> None:
    """Every parameter that is used has the gradient that it has there."""
    ids, kinds = tokens(0)
    order = order_of(0, 4)
    later, mapping = masks_of(order)
    theirs(ids, token_type_ids=kinds, perm_mask=later, target_mapping=mapping).logits.square().sum().backward()
    targets = (order.flatten() >= 0).nonzero()[:, 0]
    found = ours.encoder.predictions(batch_of(ids, kinds), order.flatten(), targets)
    ours.logits(found.last).square().sum().backward()
    expected = dict(theirs.named_parameters())
    for name, parameter in ours.encoder.layers[0].attention.named_parameters():
        close(parameter.grad / 100, expected[f"transformer.layer.0.rel_attn.{name}"].grad / 100)
    matrix = expected["transformer.word_embedding.weight"].grad
    close(ours.encoder.token_matrix.grad / matrix.abs().max(), matrix / matrix.abs().max())
