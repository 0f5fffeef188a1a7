"""XLNet: what its streams may see, its sizes, and dropout; its numbers are compared in tests/parity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import heedful
from heedful.checkpoints.encoder_folder import save_model
from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.xlnet import XlnetConfig, initialise, sized
from heedful.models.xlnet_lm import XlnetForPretraining
from heedful.text.tokenizer import Tokenizer
from heedful.text.xlnet_pipeline import framed_at_the_end


@pytest.fixture
def model() -> XlnetForPretraining:
    config = XlnetConfig(vocab_size=20, d_model=16, n_layer=3, n_head=2, d_inner=24, dropout=0.0)
    model = XlnetForPretraining(config)
    initialise(model, config, seed=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.empty_like(parameter).normal_(0.0, 0.3, generator=torch.Generator().manual_seed(1)))
    return model


def test_a_prediction_depends_on_what_came_before_in_the_order_and_on_nothing_else(model: XlnetForPretraining) -> None:
    """By gradient: which token vectors does the output at each predicted place depend on?"""
    batch = flat_batch([[1, 2, 3, 4, 5, 6], [7, 8, 9, 10]])  # each id once: its row of the matrix is its token
    order = torch.tensor([-1, 3, 1, -1, 2, 4, 0, -1, 2, 1])
    targets = torch.tensor([1, 2, 4, 5, 6, 8])
    states = model.encoder.predictions(batch, order, targets).last
    for row, place in enumerate(targets.tolist()):
        (gradient,) = torch.autograd.grad(states[row].sum(), model.encoder.token_matrix, retain_graph=True)
        mine = range(6) if place < 6 else range(6, 10)
        seen = {int(batch.ids[other]) for other in mine if order[other] < order[place]}
        assert set(gradient.abs().sum(1).nonzero()[:, 0].tolist()) == seen


def test_dropout_is_everywhere_and_only_in_training(model: XlnetForPretraining) -> None:
    config = model.encoder.config.with_dropout(0.3)
    dropping = XlnetForPretraining(config)
    dropping.load_state_dict(model.state_dict())
    batch = flat_batch([[1, 2, 3]])
    assert not torch.equal(dropping.encoder(batch).last, dropping.encoder(batch).last)
    assert torch.equal(dropping.eval().encoder(batch).last, model.eval().encoder(batch).last)


def test_sizes_and_refusals() -> None:
    assert sized("base", 32000) == XlnetConfig()
    with pytest.raises(HeedfulError, match=r"'huge'(.|\n)*nano, tiny, mini"):
        sized("huge", 10)
    for wrong in ({"n_head": 5}, {"d_head": 3}, {"ff_activation": "relu"}):
        with pytest.raises(HeedfulError, match=next(iter(wrong))):
            XlnetConfig(**wrong)  # type: ignore[arg-type]


def test_a_text_is_embedded_by_its_last_token_which_is_a_segment_of_its_own(
    tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    config = sized("nano", tiny_tokenizer.vocab_size)
    encoder = XlnetForPretraining(config).encoder
    initialise(encoder, config, seed=0)
    with torch.no_grad():
        for layer in encoder.layers:
            layer.attention.seg_embed.normal_(0.0, 20.0, generator=torch.Generator().manual_seed(0))
    save_model(encoder, tmp_path / "m", framed_at_the_end(tiny_tokenizer))
    loaded = heedful.load(tmp_path / "m")
    one = loaded.tokenizer.encode("the cat sees")
    assert one.type_ids == [0, 0, 0, 0, 2]
    with torch.no_grad():
        expected = encoder.eval()(flat_batch([one.ids], [one.type_ids])).last[-1]
        plain = encoder(flat_batch([one.ids])).last[-1]
    (found,) = loaded.embed(["the cat sees"])
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
    assert np.abs(found - plain.numpy()).max() > 1e-4
