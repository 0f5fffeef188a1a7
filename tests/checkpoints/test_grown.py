"""A model grown by new words: their rows are means, everything else is untouched, and Hugging Face loads it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file

from heedful.checkpoints.encoder_folder import load_encoder, load_for_pretraining, save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.grown import grown_config, load_grown
from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.bert import BertConfig, BertForPretraining
from heedful.text.domain_words import with_words
from heedful.text.tokenizer import Tokenizer

NEW = ["unaffordable", "loves", "㐀"]
SPELLED = {"unaffordable": ["un", "##afford", "##able"], "loves": ["love", "##s"], "㐀": ["[UNK]"]}
MATRIX, BIAS = "bert.embeddings.word_embeddings.weight", "cls.predictions.bias"


@pytest.fixture(scope="module")
def wider(tiny_tokenizer: Tokenizer) -> Tokenizer:
    return with_words(tiny_tokenizer, NEW)


@pytest.fixture
def padded(tiny_tokenizer: Tokenizer, tmp_path: Path) -> Callable[[int], Path]:
    """A folder whose matrix has so many rows more than there are pieces."""

    def make(rows: int) -> Path:
        config = BertConfig(tiny_tokenizer.vocab_size + rows, 16, 1, 2, 24, max_position_embeddings=20)
        model = BertForPretraining(config)
        rng = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(0.0, 0.3, generator=rng)
        save_model(model, tmp_path / "padded", tiny_tokenizer)
        return tmp_path / "padded"

    return make


def means(folder: Path, name: str, tokenizer: Tokenizer) -> torch.Tensor:
    """What the new rows should be, from the file as it lies on the disk."""
    rows = load_file(folder / "model.safetensors")[name]
    return torch.stack([sum(rows[tokenizer.id_of(p)] for p in SPELLED[word]) / len(SPELLED[word]) for word in NEW])


def test_new_rows_are_the_means_of_the_old_pieces(
    tiny_folder: Path, tiny_tokenizer: Tokenizer, wider: Tokenizer
) -> None:
    folder, size = read_folder(tiny_folder), tiny_tokenizer.vocab_size
    old, new = load_for_pretraining(folder, 0), load_grown(folder, wider, 0)
    assert new.encoder.config == grown_config(folder, wider)
    assert new.encoder.config.vocab_size == wider.vocab_size == size + 3
    before, after = old.state_dict(), new.state_dict()
    for name, on_disk in (("encoder.embeddings.token.weight", MATRIX), ("mlm.bias", BIAS)):
        torch.testing.assert_close(after[name][size:], means(tiny_folder, on_disk, tiny_tokenizer))
        after[name] = after[name][:size]
    assert list(after) == list(before)
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert [p.requires_grad for p in new.parameters()] == [True] * len(before)


@torch.no_grad()
def test_old_logits_stay_and_new_ones_are_means(tiny_folder: Path, tiny_tokenizer: Tokenizer, wider: Tokenizer) -> None:
    folder, size = read_folder(tiny_folder), tiny_tokenizer.vocab_size
    batch = flat_batch([tiny_tokenizer.encode("the [MASK] sees a dog").ids])
    old, new = (
        model.mlm_logits(model.encoder(batch).last)
        for model in (load_for_pretraining(folder, 0), load_grown(folder, wider, 0))
    )
    torch.testing.assert_close(new[:, :size], old)
    for number, word in enumerate(NEW, start=size):
        pieces = [tiny_tokenizer.id_of(piece) for piece in SPELLED[word]]
        torch.testing.assert_close(new[:, number], old[:, pieces].mean(1))


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_rows_without_a_piece_are_used_up_first(
    padded: Callable[[int], Path], tiny_tokenizer: Tokenizer, wider: Tokenizer, rows: int
) -> None:
    path, size = padded(rows), tiny_tokenizer.vocab_size
    model = load_grown(read_folder(path), wider, 0)
    assert model.encoder.config.vocab_size == size + max(rows, 3)
    matrix, stored = model.encoder.embeddings.token.weight, load_file(path / "model.safetensors")[MATRIX]
    assert len(matrix) == len(model.mlm.bias) == size + max(rows, 3)
    assert torch.equal(matrix[:size], stored[:size]) and torch.equal(matrix[size + 3 :], stored[size + 3 :])
    torch.testing.assert_close(matrix[size : size + 3], means(path, MATRIX, tiny_tokenizer))


def test_the_models_own_tokenizer_changes_nothing(padded: Callable[[int], Path], tiny_tokenizer: Tokenizer) -> None:
    folder = read_folder(padded(4))
    assert grown_config(folder, tiny_tokenizer) == folder.model_config
    before, after = (
        load_for_pretraining(folder, 0).state_dict(),
        load_grown(folder, tiny_tokenizer, 0).state_dict(),
    )
    assert all(torch.equal(after[name], before[name]) for name in before)


@torch.no_grad()
def test_the_saved_model_is_the_same_in_hugging_face(tiny_folder: Path, wider: Tokenizer, tmp_path: Path) -> None:
    ours = load_grown(read_folder(tiny_folder), wider, 0)
    save_model(ours, tmp_path / "grown", wider)
    theirs, info = transformers.BertForPreTraining.from_pretrained(tmp_path / "grown", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    ids = wider.encode("The cat loves unaffordable [MASK]").ids
    assert {wider.vocab_size - 3, wider.vocab_size - 2} <= set(ids)
    states = ours.encoder(flat_batch([ids])).last
    expected = theirs.eval()(torch.tensor([ids]))
    torch.testing.assert_close(ours.mlm_logits(states), expected.prediction_logits[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.nsp_logits(states[:1]), expected.seq_relationship_logits, rtol=1e-5, atol=1e-5)


def test_a_bare_encoder_grows_too(
    tiny_folder: Path, wider: Tokenizer, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    save_model(load_encoder(read_folder(tiny_folder)), tmp_path / "bare", tiny_tokenizer)
    model = load_grown(read_folder(tmp_path / "bare"), wider, 0)
    torch.testing.assert_close(
        model.encoder.embeddings.token.weight[tiny_tokenizer.vocab_size :].detach(),
        means(tiny_folder, MATRIX, tiny_tokenizer),
    )
    assert torch.equal(model.mlm.bias, torch.zeros(wider.vocab_size))


def test_without_a_tokenizer_in_the_folder_nothing_can_be_added(
    tiny_folder: Path, wider: Tokenizer, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    bare = Path(shutil.copytree(tiny_folder, tmp_path / "bare"))
    for name in ("tokenizer.json", "vocab.txt"):
        (bare / name).unlink()
    folder = read_folder(bare)
    assert grown_config(folder, tiny_tokenizer) == folder.model_config
    with pytest.raises(HeedfulError, match=f"{wider.vocab_size} pieces"):
        grown_config(folder, wider)
