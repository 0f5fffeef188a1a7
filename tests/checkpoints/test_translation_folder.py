"""Translation models come back from their folder as they were, and a folder that is not sound is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from heedful.checkpoints.translation_folder import (
    TranslationModel,
    is_translation,
    load_translation,
    longest_text,
    save_translation,
)
from heedful.data.bitext.pairs import lay_out
from heedful.errors import HeedfulError
from heedful.models.bert import BertConfig
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heedful.models.transformer import Transformer, TransformerConfig, with_encoder
from heedful.text.sides import Sides, learn_sides

JOINT = learn_sides(["the dog runs"], ["der Hund läuft"], 270)
SEPARATE = learn_sides(["the dog runs"], ["der Hund läuft"], 266, separate=True)
SHAPE: dict[str, Any] = {"encoder_layers": 1, "decoder_layers": 1, "width": 16, "heads": 2, "inner": 24}
BERT = BertConfig(
    vocab_size=SEPARATE.source.vocab_size,
    hidden_size=24,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=40,
)


def sizes(sides: Sides) -> tuple[int, int]:
    return sides.source.vocab_size, sides.target.vocab_size


def filled(model: TranslationModel) -> TranslationModel:
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():  # biases too: zeros would hide mistakes
            parameter.normal_(0.0, 0.2, generator=rng)
    model.eval()
    return model


KINDS: dict[str, Callable[[], tuple[TranslationModel, Sides]]] = {
    "transformer": lambda: (Transformer(TransformerConfig(*sizes(JOINT), **SHAPE)), JOINT),
    "two vocabularies": lambda: (Transformer(TransformerConfig(*sizes(SEPARATE), share=False, **SHAPE)), SEPARATE),
    "learned positions": lambda: (
        Transformer(TransformerConfig(*sizes(JOINT), positions="learned", pre_norm=True, max_length=30, **SHAPE)),
        JOINT,
    ),
    "BERT": lambda: (
        Transformer(with_encoder(TransformerConfig(*sizes(SEPARATE), share=False, **SHAPE), BERT)),
        SEPARATE,
    ),
    "attention": lambda: (Seq2Seq(Seq2SeqConfig(*sizes(JOINT), share=True, embedding_size=8, hidden_size=12)), JOINT),
    "decoder 2": lambda: (
        Seq2Seq(Seq2SeqConfig(*sizes(SEPARATE), embedding_size=8, hidden_size=12, decoder="2", cell="lstm")),
        SEPARATE,
    ),
}


@pytest.fixture(params=KINDS)
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[TranslationModel, Sides, Path]:
    model, sides = KINDS[request.param]()
    save_translation(filled(model), tmp_path / "model", sides, ("en", "de"))
    return model, sides, tmp_path / "model"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound folder to be damaged."""
    model, sides = KINDS["transformer"]()
    save_translation(filled(model), tmp_path / "model", sides, ("en", "de"))
    return tmp_path / "model"


def test_a_model_comes_back_bit_for_bit(saved: tuple[TranslationModel, Sides, Path]) -> None:
    model, sides, path = saved
    found = load_translation(path)
    assert found.model.config == model.config
    assert found.names == ("en", "de")
    assert found.sides.joint == sides.joint
    assert not found.model.training
    source, target = sides.source.encode("the dog").ids, sides.target.encode("der Hund").ids
    bitext = lay_out([source, source[1:]], [target, target])
    with torch.inference_mode():
        assert torch.equal(found.model.logits(found.model(bitext)), model.logits(model(bitext)))
    assert found.sides.source.encode("the dog runs").ids == sides.source.encode("the dog runs").ids
    assert found.sides.target.encode("läuft").ids == sides.target.encode("läuft").ids


def test_a_folder_says_what_it_is(saved: tuple[TranslationModel, Sides, Path], tiny_folder: Path) -> None:
    _, _, path = saved
    assert is_translation(path)
    assert not is_translation(tiny_folder)
    assert not is_translation(path / "nowhere")


def test_the_longest_text_is_that_of_the_positions() -> None:
    limits = {name: longest_text(build()[0].config) for name, build in KINDS.items()}
    assert limits["learned positions"] == 30
    assert limits["BERT"] == 40
    assert limits["attention"] == limits["transformer"] == 512


def change(path: Path, **values: Any) -> None:
    config = json.loads((path / "config.json").read_text("utf-8"))
    (path / "config.json").write_text(json.dumps({**config, **values}), "utf-8")


def test_an_unknown_key_is_refused_with_the_nearest(folder: Path) -> None:
    shape = json.loads((folder / "config.json").read_text("utf-8"))["model"]
    change(folder, model={**shape, "head": 2})
    with pytest.raises(HeedfulError, match="unknown key 'head'") as error:
        load_translation(folder)
    assert "heads" in str(error.value)
    assert error.value.where == folder / "config.json"
    change(folder, model=shape, sources="en")
    with pytest.raises(HeedfulError, match="unknown key 'sources'"):
        load_translation(folder)


def test_another_kind_of_model_is_refused(folder: Path, tmp_path: Path) -> None:
    change(folder, model_type="marian")
    with pytest.raises(HeedfulError, match="'marian' is none that translates"):
        load_translation(folder)
    with pytest.raises(HeedfulError, match=r"no config\.json"):
        load_translation(tmp_path)


def test_a_shape_that_cannot_be_is_refused(folder: Path) -> None:
    shape = json.loads((folder / "config.json").read_text("utf-8"))["model"]
    change(folder, model={**shape, "heads": 3})
    with pytest.raises(HeedfulError, match="not a multiple of heads") as error:
        load_translation(folder)
    assert error.value.where == folder / "config.json"


def test_weights_of_another_shape_are_refused(folder: Path) -> None:
    shape = json.loads((folder / "config.json").read_text("utf-8"))["model"]
    change(folder, model={**shape, "inner": 25})
    with pytest.raises(HeedfulError, match=r"weights of another model: .* is \(24, 16\), not \(25, 16\)"):
        load_translation(folder)
    change(folder, model={**shape, "decoder_layers": 2})
    with pytest.raises(HeedfulError, match=r"weights of another model: .* they lack it"):
        load_translation(folder)


def test_a_missing_tensor_is_named(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    name = min(tensors)
    del tensors[name]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(HeedfulError, match=f"{name}: they lack it"):
        load_translation(folder)


def test_damaged_weights_and_a_missing_tokenizer_are_refused(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(HeedfulError, match="not a sound safetensors file"):
        load_translation(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(HeedfulError) as error:
        load_translation(folder)
    assert "source" in str(error.value.where)


def test_a_vocabulary_larger_than_the_model_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    model = Transformer(TransformerConfig(100, 100, **SHAPE))
    with pytest.raises(HeedfulError, match="only 100 rows"):
        save_translation(model, tmp_path / "model", JOINT, ("en", "de"))
    assert not (tmp_path / "model").exists()


def test_a_folder_that_is_there_is_only_replaced_when_told(folder: Path, tmp_path: Path) -> None:
    model, sides = KINDS["attention"]()
    with pytest.raises(HeedfulError, match="not empty"):
        save_translation(model, folder, sides, ("en", "de"))
    assert isinstance(load_translation(folder).model, Transformer)
    save_translation(model, folder, sides, ("en", "de"), overwrite=True)
    assert isinstance(load_translation(folder).model, Seq2Seq)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "text.txt").write_text("precious")
    with pytest.raises(HeedfulError, match="not a model"):
        save_translation(model, tmp_path / "thesis", sides, ("en", "de"), overwrite=True)
