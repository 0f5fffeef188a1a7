"""Translations come in the order of the sources, whatever their lengths and whoever computes the batches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from heedful.checkpoints.translation_folder import TranslationModel
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heedful.models.transformer import Transformer, TransformerConfig
from heedful.tasks.translate_decoding import decode, longest_translation
from heedful.text.sides import Symbols

SYMBOLS = Symbols(start=2, end=3, banned=(0, 2, 4))


@pytest.fixture(scope="module", params=["transformer", "attention"])
def model(request: pytest.FixtureRequest) -> TranslationModel:
    built: TranslationModel = Seq2Seq(Seq2SeqConfig(30, 30, embedding_size=8, hidden_size=12))
    if request.param == "transformer":
        built = Transformer(
            TransformerConfig(30, 30, encoder_layers=1, decoder_layers=1, width=16, heads=2, inner=24, max_length=60)
        )
    rng = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.normal_(0.0, 0.4, generator=rng)
    built.eval()
    return built


def sources(count: int) -> list[list[int]]:
    return [[2, *(5 + (n * i) % 25 for i in range(1, 2 + n % 7)), 3] for n in range(1, count + 1)]


@pytest.mark.parametrize("beam", [1, 3])
def test_order_does_not_matter_and_neither_do_batches(model: TranslationModel, beam: int) -> None:
    given = sources(300)  # more than one batch
    whole = decode(model, given, SYMBOLS, 12, beam)
    backwards = decode(model, given[::-1], SYMBOLS, 12, beam)
    assert whole == backwards[::-1]
    assert [decode(model, [one], SYMBOLS, 12, beam)[0] for one in given[:20]] == whole[:20]
    with ThreadPoolExecutor(2) as pool:
        assert decode(model, given, SYMBOLS, 12, beam, pool.map) == whole


def test_nothing_banned_is_said_and_nothing_longer_than_allowed(model: TranslationModel) -> None:
    said = decode(model, sources(100), SYMBOLS, 9)
    assert not {symbol for ids in said for symbol in ids} & {*SYMBOLS.banned, SYMBOLS.end}
    assert 1 <= max(map(len, said)) <= 9


def test_a_long_source_may_have_a_long_translation_up_to_the_model() -> None:
    assert longest_translation(3, 512) == 29
    assert longest_translation(500, 512) == 512
