"""Models in int8: what is computed, what stays in float32, what is stored, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import heedful
from heedful.checkpoints.conversion import convert
from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.int8_scheme import Int8Scheme
from heedful.checkpoints.task_folder import load_for_task, save_for_task
from heedful.config import to_mapping
from heedful.data.batching import flat_batch
from heedful.decoding import Beam
from heedful.errors import HeedfulError, PrecisionWarning
from heedful.inference import int8
from heedful.inference.embedder import Embedder
from heedful.inference.int8 import LEAST_COSINE, LEAST_MEAN, encoder_in_int8
from heedful.inference.int8_folder import convert_to_int8, weights_size
from heedful.inference.load import load_translator, predictor
from heedful.models.albert import AlbertConfig
from heedful.models.bert import BertConfig
from heedful.models.distilbert import DistilBertConfig
from heedful.models.electra import ElectraConfig
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.ernie import ErnieConfig
from heedful.models.gpt import GptConfig
from heedful.models.int8_parts import places, put_in_int8
from heedful.models.modernbert import ModernBertConfig
from heedful.models.mpnet import MPNetConfig
from heedful.models.roberta import RobertaConfig
from heedful.models.xlnet import XlnetConfig
from heedful.nn.packed_int8 import Int8Instructions, int8_levels
from heedful.nn.packed_linear import pack_int8
from heedful.tasks.answer import Answer
from heedful.tasks.choose import Choose
from heedful.tasks.classify import Classify
from heedful.tasks.multilabel import MultiLabel
from heedful.tasks.regress import Regress
from heedful.tasks.tag import Tag
from heedful.tasks.task import Task
from tests.gpt_folder import byte_level_tokenizer, random_gpt

pytestmark = pytest.mark.processor

TEXTS = ["the cat sees the dog.", "我爱北京", "unaffordable", "the dog loves the cat, and the cat 42 dogs!"]
SHAPE = {"vocab_size": 90, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
FAMILIES: dict[str, EncoderConfig] = {
    "bert": BertConfig(**SHAPE),
    "bert with another activation": BertConfig(**SHAPE, hidden_act="relu"),
    "roberta": RobertaConfig(**SHAPE),
    "ernie": ErnieConfig(**SHAPE),
    "electra": ElectraConfig(**SHAPE, embedding_size=24),
    "albert": AlbertConfig(**SHAPE, embedding_size=24),
    "mpnet": MPNetConfig(**SHAPE),
    "distilbert": DistilBertConfig(vocab_size=90, dim=48, n_layers=2, n_heads=4, hidden_dim=64),
    "modernbert": ModernBertConfig(**SHAPE),
    "gpt": GptConfig(vocab_size=90, n_embd=48, n_layer=2, n_head=4, n_positions=64),
    "xlnet": XlnetConfig(vocab_size=90, d_model=48, n_layer=2, n_head=4, d_inner=64),
}


def stirred(model: torch.nn.Module) -> Any:
    rng = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(float("norm" in name and name.endswith("weight")), 0.2, generator=rng)
    return model.eval()


def without_dot_product(monkeypatch: pytest.MonkeyPatch, there: bool = False) -> None:
    told = Int8Instructions(there, "this is only pretended")
    monkeypatch.setattr(int8, "int8_instructions", lambda: told)


def in_int8(encoder: Encoder, kept: tuple[str, ...] = ()) -> Encoder:
    put_in_int8(encoder, kept, int8_levels())
    encoder.pack()
    pack_int8(encoder)
    return encoder


@torch.inference_mode()
def states(encoder: Encoder) -> torch.Tensor:
    rng = torch.Generator().manual_seed(0)
    sequences = [torch.randint(5, 90, (n,), generator=rng).tolist() for n in (30, 12, 12, 1)]
    last: torch.Tensor = encoder(flat_batch(sequences)).last
    return last


def cosine(a: Any, b: Any) -> float:
    return float(torch.cosine_similarity(torch.as_tensor(a).flatten(), torch.as_tensor(b).flatten(), dim=0))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_computed_in_int8_and_stored_so(family: str, tmp_path: Path) -> None:
    save_model(stirred(FAMILIES[family].build()), tmp_path / "float", None)
    folder = read_folder(tmp_path / "float")
    exact, rounded = load_encoder(folder), load_encoder(folder)
    kept = next(iter(places(rounded)))
    convert(tmp_path / "float", tmp_path / "int8", int8=Int8Scheme(9, (f"encoder.{kept}",), 1, 1.0, 1.0))
    expected = states(in_int8(rounded, (kept,)))
    assert cosine(expected, states(exact)) > 0.99
    assert torch.equal(states(in_int8(load_encoder(read_folder(tmp_path / "int8")), (kept,))), expected)
    stored = load_file(tmp_path / "int8" / "model.int8.safetensors")
    assert {str(tensor.dtype) for tensor in stored.values()} == {"torch.int8", "torch.float32"}


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_a_text_alone_has_the_states_that_it_has_among_others(family: str) -> None:
    encoder = in_int8(stirred(FAMILIES[family].build()))
    texts = [list(range(5, 35)), list(range(50, 62))]
    together = encoder(flat_batch(texts)).last.split([len(text) for text in texts])
    for text, states in zip(texts, together, strict=True):
        assert cosine(encoder(flat_batch([text])).last, states) > 0.9999


def test_a_folder_in_int8_is_a_quarter_of_the_size(tmp_path: Path) -> None:
    shape = {**SHAPE, "vocab_size": 2000, "hidden_size": 128, "intermediate_size": 512, "max_position_embeddings": 64}
    config = BertConfig(**shape)
    save_model(stirred(config.build()), tmp_path / "float", None)
    convert(tmp_path / "float", tmp_path / "int8", int8=Int8Scheme(12, (), 1, 1.0, 1.0))
    assert weights_size(tmp_path / "int8") < 0.30 * weights_size(tmp_path / "float")
    convert(tmp_path / "int8", tmp_path / "again")  # in float32, with what the numbers stand for
    again = read_folder(tmp_path / "again")
    assert again.int8 is None
    assert torch.equal(states(load_encoder(again)), states(load_encoder(read_folder(tmp_path / "int8"))))


def test_loading_in_int8_and_a_folder_in_int8_are_the_same(tiny: Embedder, tiny_folder: Path, tmp_path: Path) -> None:
    told = convert_to_int8(tiny_folder, tmp_path / "small")
    assert told.products == 12
    stored = heedful.load(tmp_path / "small", precision="int8", force=True)
    loaded = heedful.load(tiny_folder, precision="int8", force=True)
    assert stored.int8 == loaded.int8 == told
    assert np.array_equal(stored.embed(TEXTS), loaded.embed(TEXTS))
    assert not np.array_equal(loaded.embed(TEXTS), tiny.embed(TEXTS))
    assert cosine(loaded.embed(TEXTS), tiny.embed(TEXTS)) > LEAST_COSINE
    assert stored.fill("the [MASK] sees") == loaded.fill("the [MASK] sees")
    assert "12 of 12 matrices; cosine with float32 on 12 texts" in str(told)


def test_what_loses_too_much_stays_in_float32(tiny_folder: Path) -> None:
    folder = read_folder(tiny_folder)
    encoder = load_encoder(folder)
    with torch.no_grad():  # one number so large that all others are rounded away, as real models have it
        encoder.get_submodule("layers.1.up").bias[3] = 5000.0  # type: ignore[operator]
        encoder.get_submodule("layers.1.down").weight[:, 3] /= 5000.0  # type: ignore[index]
    found = encoder_in_int8(folder, encoder, TEXTS)
    assert "encoder.layers.1.down" in found.float32
    assert len(found.float32) < found.products
    assert found.texts == len(TEXTS)
    assert found.least_cosine >= LEAST_COSINE
    assert found.mean_cosine >= LEAST_MEAN
    assert "in float32 stay encoder." in str(found)


def test_without_a_dot_product_float32_is_used_and_said(
    tiny: Embedder, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_dot_product(monkeypatch)
    with pytest.warns(PrecisionWarning, match="only pretended, so int8 would hardly pay: float32 is used"):
        model = heedful.load(tiny_folder, precision="int8")
    assert model.int8 is None
    assert np.array_equal(model.embed(TEXTS), tiny.embed(TEXTS))
    convert_to_int8(tiny_folder, tmp_path / "small")
    with pytest.warns(PrecisionWarning, match="float32 is used"):
        stored = heedful.load(tmp_path / "small")
    assert stored.int8 is None
    assert cosine(stored.embed(TEXTS), tiny.embed(TEXTS)) > LEAST_COSINE
    assert heedful.load(tmp_path / "small", precision="float32").int8 is None


def test_with_a_dot_product_it_is_used_without_force(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_dot_product(monkeypatch, there=True)
    assert heedful.load(tiny_folder).int8 is None
    assert heedful.load(tiny_folder, precision="int8").int8 is not None
    told = convert_to_int8(tiny_folder, tmp_path / "small", TEXTS[:2])
    assert told.texts == 2
    assert heedful.load(tmp_path / "small").int8 == told
    assert heedful.load(tmp_path / "small", precision="float32").int8 is None


def test_a_precision_that_is_none_or_a_device_that_is_no_processor(tiny_folder: Path) -> None:
    with pytest.raises(HeedfulError, match=r"no precision 'int4'(.|\n)*auto, float32, int8"):
        heedful.load(tiny_folder, precision="int4")
    with pytest.raises(HeedfulError, match="int8 is for a CPU"):
        Embedder(read_folder(tiny_folder), "meta", "int8")


INPUTS: dict[str, tuple[Task[Any], list[Any]]] = {
    "classify": (Classify(labels=("a", "b", "c")), ["the cat", "我爱北京"]),
    "regress": (Regress(), ["the cat", "我爱北京"]),
    "multilabel": (MultiLabel(labels=("a", "b", "c")), ["the cat", "我爱北京"]),
    "tag": (Tag(labels=("O", "B-X", "I-X")), ["the cat sees", "love"]),
    "tag by a CRF": (Tag(labels=("O", "B-X", "I-X"), head="bilstm-crf", lstm_width=8), ["the cat sees", "love"]),
    "answer": (Answer(), [{"question": "who", "context": "the cat sees the dog"}]),
    "choose": (Choose(), [{"context": "the cat", "choices": ["sees", "loves", "42"]}]),
}


@pytest.fixture
def saved(tiny_folder: Path, tmp_path: Path) -> Callable[[Task[Any]], Path]:
    def save(task: Task[Any]) -> Path:
        folder = read_folder(tiny_folder)
        model, labels = load_for_task(folder, task.model, seed=0), getattr(task, "labels", ())
        settings = {"task": task.name, **to_mapping(task)}
        save_for_task(
            model, tmp_path / "m", folder.tokenizer, task=settings, architecture=task.architecture, labels=labels
        )
        return tmp_path / "m"

    return save


def numbers(answer: Any) -> list[float]:
    if isinstance(answer, dict):
        return [number for key, value in answer.items() for number in numbers(value)]
    if isinstance(answer, list | tuple):
        return [number for value in answer for number in numbers(value)]
    return [float(answer)] if isinstance(answer, float) else []


@pytest.mark.parametrize("name", INPUTS)
def test_every_task_answers_nearly_the_same(name: str, saved: Callable[[Task[Any]], Path], tmp_path: Path) -> None:
    task, inputs = INPUTS[name]
    folder = saved(task)
    exact, rounded = predictor(folder), predictor(folder, force=True, precision="int8")
    assert rounded.int8 is not None
    ours, theirs = numbers(exact.predict(inputs)), numbers(rounded.predict(inputs))
    assert len(ours) == len(theirs) > 0
    assert np.allclose(ours, theirs, atol=0.05)
    assert heedful.load(folder, precision="int8", force=True).predict(inputs) == rounded.predict(inputs)
    convert_to_int8(folder, tmp_path / "small")
    assert predictor(tmp_path / "small", force=True, precision="int8").predict(inputs) == rounded.predict(inputs)


@pytest.mark.parametrize("kind", ["transformer", "pre-norm"])
def test_translation_in_int8(kind: str, tiny_translators: dict[str, Path], tmp_path: Path) -> None:
    exact = load_translator(tiny_translators[kind], "cpu", "heedful")
    rounded = load_translator(tiny_translators[kind], precision="int8", force=True)
    assert rounded.int8 is not None
    assert rounded.int8.products == 23
    pairs = [("the cat", "我爱北京"), ("love the dog", "the cat sees")]
    assert np.allclose(exact.score(pairs), rounded.score(pairs), rtol=0.1)
    theirs = load_translator(tiny_translators[kind], "cpu", "ctranslate2", "int8", force=True)
    texts = rounded.translate(TEXTS, beam=3, max_length=9)
    assert texts == theirs.translate(TEXTS, beam=3, max_length=9) and len(texts) == len(TEXTS)
    told = convert_to_int8(tiny_translators[kind], tmp_path / "small")
    stored = load_translator(tmp_path / "small", precision="int8", force=True)
    assert stored.int8 == told == rounded.int8
    assert stored.hypotheses(TEXTS, Beam(2), 5) == rounded.hypotheses(TEXTS, Beam(2), 5)
    assert weights_size(tmp_path / "small") < 0.6 * weights_size(tiny_translators[kind])  # tiny: half of it is scales


@pytest.mark.parametrize("kind", ["attention", "rnn"])
def test_rnns_are_not_for_int8(kind: str, tiny_translators: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match=r"an RNN is not computed in int8(.|\n)*float32"):
        load_translator(tiny_translators[kind], precision="int8", force=True)
    with pytest.raises(HeedfulError, match="RNN"):
        convert_to_int8(tiny_translators[kind], tmp_path / "small")
    assert not (tmp_path / "small").exists()


def test_generation_in_int8(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer()
    gpt = random_gpt(tokenizer.vocab_size, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    save_model(gpt, tmp_path / "gpt", tokenizer)
    exact = heedful.load(tmp_path / "gpt", "cpu")
    rounded = heedful.load(tmp_path / "gpt", precision="int8", force=True)
    assert rounded.int8 is not None
    assert rounded.int8.products == 9  # four a layer, and the head
    told = convert_to_int8(tmp_path / "gpt", tmp_path / "small")
    stored = heedful.load(tmp_path / "small", precision="int8", force=True)
    prompts = ["the cat", "in"]
    assert stored.int8 == told == rounded.int8
    assert stored.generate(prompts, max_tokens=12) == rounded.generate(prompts, max_tokens=12)
    assert stored.generate("the", sample=True, max_tokens=6, seed=3) == rounded.generate(
        "the", sample=True, max_tokens=6, seed=3
    )
    ids = [tokenizer.encode("the cat on the tin").ids]
    with torch.inference_mode():
        ours, theirs = (m.language_model.logits(m.encoder(flat_batch(ids)).last) for m in (exact, rounded))
    assert cosine(ours, theirs) > 0.98


@pytest.fixture
def small(tiny_folder: Path, tmp_path: Path) -> Path:
    convert_to_int8(tiny_folder, tmp_path / "small")
    return tmp_path / "small"


def change_config(folder: Path, **changes: Any) -> None:
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for key, value in changes.items():
        values["quantization_config"][key] = value
    (folder / "config.json").write_text(json.dumps(values), encoding="utf-8")


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    file = folder / "model.int8.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


QUERY = "bert.encoder.layer.0.attention.self.query.weight"
DAMAGES: dict[str, tuple[Callable[[dict[str, torch.Tensor]], object], str]] = {
    "no scales": (lambda t: t.pop(f"{QUERY}_scale"), "has no scales"),
    "no matrix": (lambda t: t.pop(QUERY), "scales without their matrix"),
    "too few": (lambda t: t.update({f"{QUERY}_scale": torch.ones(3, 1)}), r"F32 \[3, 1\] for a matrix of \[32, 32\]"),
    "not float32": (lambda t: t.update({f"{QUERY}_scale": torch.ones(32, 1).half()}), "F16"),
    "zero": (lambda t: t[f"{QUERY}_scale"].zero_(), "not a number above zero"),
    "not a number": (lambda t: t[f"{QUERY}_scale"].fill_(float("nan")), "not a number above zero"),
    "a vector": (lambda t: t.update({"bert.embeddings.LayerNorm.bias": torch.ones(32).to(torch.int8)}), "no scales"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_scales_are_refused(damage: str, small: Path) -> None:
    change, told = DAMAGES[damage]
    change_weights(small, change)
    with pytest.raises(HeedfulError, match=told) as refused:
        heedful.load(small, "cpu")
    assert "model.int8.safetensors" in str(refused.value)


SCHEMES = {
    "another method": ({"quant_method": "gptq"}, "stored by 'gptq', which is not supported"),
    "an unknown key": ({"bits": 4}, "unknown key 'bits'"),
    "a wrong type": ({"products": "many"}, "products is 'many'"),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_unknown_schemes_are_refused(scheme: str, small: Path) -> None:
    changes, told = SCHEMES[scheme]
    change_config(small, **changes)
    with pytest.raises(HeedfulError, match=told):
        heedful.load(small, "cpu")


def test_config_and_weights_must_agree(small: Path, tiny_folder: Path, tmp_path: Path) -> None:
    values = json.loads((small / "config.json").read_text(encoding="utf-8"))
    plain = shutil.copytree(tiny_folder, tmp_path / "plain")
    (plain / "config.json").write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(HeedfulError, match="asks for weights in int8, and there are none"):
        read_folder(plain)
    del values["quantization_config"]
    (small / "config.json").write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(HeedfulError, match="in int8, but there is no quantization_config"):
        read_folder(small)


def test_other_programs_find_no_weights(small: Path) -> None:
    import transformers

    with pytest.raises((OSError, ValueError)):
        transformers.BertModel.from_pretrained(small)


def test_training_from_int8_is_refused(small: Path, tiny_translators: dict[str, Path], tmp_path: Path) -> None:
    rows = [{"text": "the cat", "label": "a"}, {"text": "the dog", "label": "b"}] * 4
    with pytest.raises(HeedfulError, match=r"not for training(.|\n)*train from the folder it was made of"):
        heedful.finetune("classify", model=small, train=rows, dev=rows, output=tmp_path / "run", progress=False)
    convert_to_int8(tiny_translators["transformer"], tmp_path / "t")
    pairs = [{"en": "the cat", "zh": "我爱"}] * 4
    with pytest.raises(HeedfulError, match="not for training"):
        heedful.train_translator(
            train=pairs, start=tmp_path / "t", max_length=32, output=tmp_path / "run", progress=False
        )
