"""GPT against Hugging Face: the same folder gives the same states, maps and logits, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel, GPT2Model

from heedful.checkpoints.encoder_folder import load_encoder, load_for_pretraining, save_model
from heedful.checkpoints.folder import read_folder
from heedful.data.batching import flat_batch
from heedful.models.gpt import GptForPretraining
from heedful.text.tokenizer import Tokenizer
from tests.gpt_folder import byte_level_tokenizer, random_gpt

SEQUENCES = [[5, 9, 30, 4, 17, 8, 2], [7, 7, 300], [11, 12, 13], [40]]
SHAPE = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 24}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return byte_level_tokenizer()


@pytest.fixture(scope="module")
def theirs(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> tuple[GPT2LMHeadModel, Path]:
    """A random GPT-2 of Hugging Face and its folder, with a byte-level tokenizer in it."""
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=tokenizer.vocab_size, initializer_range=0.3, **SHAPE)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # biases and norms too: zeros and ones would hide mistakes
            if name.endswith("bias") or "ln_" in name:
                parameter.normal_(0.5, 0.3)
    folder = tmp_path_factory.mktemp("gpt2") / "theirs"
    model.save_pretrained(folder)
    tokenizer.save(folder)
    return model, folder


@torch.no_grad()
def assert_equal(ours: GptForPretraining, theirs: GPT2LMHeadModel) -> None:
    ours.eval()
    batch = flat_batch(SEQUENCES)
    layers = range(SHAPE["n_layer"] + 1)
    encoded = ours.encoder(batch, hidden=list(layers), attention=[1, 3])
    logits, start = ours.logits(encoded.last), 0
    theirs.set_attn_implementation("eager")
    for number, ids in enumerate(SEQUENCES):
        there = theirs(torch.tensor([ids]), output_hidden_states=True, output_attentions=True)
        rows = slice(start, start + len(ids))
        torch.testing.assert_close(logits[rows], there.logits[0], rtol=1e-5, atol=1e-5)
        for layer in layers:
            torch.testing.assert_close(encoded.hidden[layer][rows], there.hidden_states[layer][0], rtol=1e-5, atol=1e-5)
        for layer in (1, 3):
            torch.testing.assert_close(encoded.attention[layer][number], there.attentions[layer - 1][0])
        start += len(ids)


def test_their_folder_here(theirs: tuple[GPT2LMHeadModel, Path]) -> None:
    model, path = theirs
    folder = read_folder(path)
    assert not folder.notes
    ours = load_for_pretraining(folder, seed=0)
    assert isinstance(ours, GptForPretraining)
    assert_equal(ours, model)


def test_our_folder_there(tokenizer: Tokenizer, tmp_path: Path) -> None:
    ours = random_gpt(tokenizer.vocab_size, **SHAPE)
    save_model(ours, tmp_path / "ours", tokenizer)
    there, info = GPT2LMHeadModel.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert_equal(ours, there.eval())
    text = "A text, with 中文 in it."
    assert AutoTokenizer.from_pretrained(tmp_path / "ours")(text)["input_ids"] == tokenizer.encode(text).ids
    save_model(ours.encoder, tmp_path / "alone", tokenizer)
    _, info = GPT2Model.from_pretrained(tmp_path / "alone", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    again = load_encoder(read_folder(tmp_path / "alone")).state_dict()
    assert all(torch.equal(again[name], tensor) for name, tensor in ours.encoder.state_dict().items())


def test_the_original_names_are_understood(theirs: tuple[GPT2LMHeadModel, Path], tmp_path: Path) -> None:
    """OpenAI's own files leave `transformer.` out and hold the causal masks."""
    from safetensors.torch import load_file, save_file

    from heedful.checkpoints.folder import CONFIG

    model, path = theirs
    stored = load_file(path / "model.safetensors")
    named = {name.removeprefix("transformer."): tensor.contiguous() for name, tensor in stored.items()}
    named |= {f"h.{i}.attn.bias": torch.ones(1, 1, 24, 24).tril() for i in range(3)}
    (tmp_path / CONFIG).write_bytes((path / CONFIG).read_bytes())
    save_file(named, tmp_path / "model.safetensors")
    ours = load_for_pretraining(read_folder(tmp_path), seed=0)
    assert isinstance(ours, GptForPretraining)
    assert_equal(ours, model)


def test_rows_alone_and_packed_are_the_same(tokenizer: Tokenizer) -> None:
    model, batch = random_gpt(tokenizer.vocab_size, **SHAPE).eval(), flat_batch(SEQUENCES)
    rows = torch.tensor([3, 6, 9, 13])
    with torch.no_grad():
        states = model.encoder(batch).last
        torch.testing.assert_close(model.encoder.states_at(batch, rows), states[rows])
        logits = model.logits(states)
        model.pack()
        torch.testing.assert_close(model.logits(model.encoder(batch).last), logits, rtol=1e-4, atol=1e-4)
