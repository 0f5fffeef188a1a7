"""ELMo folders: the published layout and its fixture, our own, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import heedful
from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.folder import read_folder
from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.elmo import Elmo, ElmoConfig, initialise
from heedful.text.elmo_pipeline import OTHER_BYTES, character_tokenizer
from heedful.text.tokenizer import Tokenizer

CONFIG = ElmoConfig(character_width=3, filters=((1, 4), (3, 6)), characters_per_word=20, projection=4, lstm_width=6)
OPTIONS = {
    "lstm": {"cell_clip": 3, "proj_clip": 3, "use_skip_connections": True,
             "n_layers": 2, "projection_dim": 4, "dim": 6},
    "char_cnn": {
        "embedding": {"dim": 3}, "filters": [[1, 4], [3, 6]], "n_highway": 2, "n_characters": 262,
        "max_characters_per_token": 20, "activation": "relu",
    },
}  # fmt: skip


@pytest.fixture
def model() -> Elmo:
    model = Elmo(CONFIG)
    initialise(model, CONFIG, seed=3)
    return model.eval()


@pytest.fixture
def published(model: Elmo, tmp_path: Path) -> Path:
    """The same model as others have written it down."""
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "options.json").write_text(json.dumps(OPTIONS))
    cnn = model.embeddings
    with h5py.File(folder / "x_weights.hdf5", "w") as file, torch.no_grad():
        file["char_embed"] = cnn.character.weight[1:].numpy()
        for number, conv in enumerate(cnn.filters):
            file[f"CNN/W_cnn_{number}"] = conv.weight.permute(2, 1, 0)[None].numpy()
            file[f"CNN/b_cnn_{number}"] = conv.bias.numpy()
        for number, highway in enumerate(cnn.highways):
            for theirs, ours in (("carry", highway.gate), ("transform", highway.transform)):
                file[f"CNN_high_{number}/W_{theirs}"] = ours.weight.T.numpy()
                file[f"CNN_high_{number}/b_{theirs}"] = ours.bias.numpy()
        file["CNN_proj/W_proj"], file["CNN_proj/b_proj"] = cnn.projection.weight.T.numpy(), cnn.projection.bias.numpy()
        for number, layer in enumerate(model.layers):
            for way in (0, 1):
                cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
                i, f, o, new = torch.cat([layer.input[way], layer.recurrent[way], layer.bias[way][None]]).chunk(4, -1)
                f[-1] -= 1  # they add it when they compute
                whole = torch.cat([i, new, f, o], dim=-1)
                file[f"{cell}/W_0"], file[f"{cell}/B"] = whole[:-1].numpy(), whole[-1].numpy()
                file[f"{cell}/W_P_0"] = layer.projection[way].numpy()
    return folder


def test_the_published_layout_is_read_and_comes_out_in_ours(published: Path, model: Elmo, tmp_path: Path) -> None:
    folder = read_folder(published)
    assert folder.model_config == CONFIG
    found = load_encoder(folder)
    for name, tensor in model.state_dict().items():
        if name == "embeddings.character.weight":
            tensor[0] = 0
        torch.testing.assert_close(found.state_dict()[name], tensor, rtol=0, atol=1e-6)
    save_model(found, tmp_path / "ours", folder.tokenizer)
    again = load_encoder(read_folder(tmp_path / "ours"))
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in found.state_dict().items())
    texts = ["The cat sees a dog .", "x"]
    first, second = (heedful.load(path).embed(texts, unit="word") for path in (published, tmp_path / "ours"))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True)) and first[0].shape == (6, 8)


def test_a_missing_tensor_is_named(published: Path) -> None:
    with h5py.File(published / "x_weights.hdf5", "a") as file:
        del file["RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0"]
    with pytest.raises(HeedfulError, match=r"lack RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0(.|\n)*x_weights\.hdf5"):
        read_folder(published)


def test_what_cannot_be_read_is_refused(published: Path, tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    (published / "options.json").write_text(json.dumps({**OPTIONS, "lstm": {**OPTIONS["lstm"], "proj_clip": 5}}))
    with pytest.raises(HeedfulError, match="cell_clip 3 and proj_clip 5 differ"):
        read_folder(published)
    (published / "options.json").write_text("{}")
    with pytest.raises(HeedfulError, match="not the options of an ELMo: 'lstm'"):
        read_folder(published)
    (published / "options.json").write_text(json.dumps(OPTIONS))
    (published / "x_weights.hdf5").write_bytes(b"no such thing")
    with pytest.raises(HeedfulError, match="not a readable HDF5 file"):
        read_folder(published)
    save_model(Elmo(CONFIG), tmp_path / "ours", character_tokenizer())
    shutil.copy(tmp_path / "ours" / "config.json", published)
    for file in (tmp_path / "ours").glob("*token*"):
        file.unlink()
    (tmp_path / "ours" / "vocab.txt").unlink()
    tiny_tokenizer.save(tmp_path / "ours")
    with pytest.raises(HeedfulError, match="does not read bytes"):
        read_folder(tmp_path / "ours")


@torch.no_grad()
def test_the_published_fixture_is_reproduced() -> None:
    """Ten batches of three sentences, the state going on from batch to batch, as the expected numbers were made."""
    folder = Path(os.environ.get("HEEDFUL_MODELS", "")) / "elmo-fixture"
    if not folder.is_dir():
        pytest.skip("needs $HEEDFUL_MODELS with elmo-fixture in it")
    read = read_folder(folder)
    model, tokenizer = load_encoder(read), read.require_tokenizer()
    sentences = json.loads((folder / "lm_embeddings_sentences.json").read_text(encoding="utf-8"))
    expected = [h5py.File(folder / f"lm_embeddings_{lane}.hdf5") for lane in range(3)]
    memory = None
    for number in range(10):
        batch = flat_batch([tokenizer.encode(sentences[lane][number]).ids for lane in range(3)])
        found = model(batch, memory=memory)
        memory = found.memory
        parts = zip(batch.ids.split(batch.lengths), found.last.split(batch.lengths), strict=True)
        for lane, (ids, states) in enumerate(parts):
            words = states[ids < OTHER_BYTES][1:-1]  # without the ends of the sentence
            both = np.concatenate(list(expected[lane][str(number)]), axis=-1)
            np.testing.assert_allclose(words.numpy(), both, atol=1e-5)
