"""What is converted computes the same in transformers as the source does here, whatever format the source has."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
import transformers

import heedful
from heedful.checkpoints.conversion import convert
from heedful.checkpoints.encoder_folder import load_encoder
from heedful.checkpoints.folder import read_folder
from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.inference.verification import verify

MODELS = Path(os.environ.get("HEEDFUL_MODELS", ""))
CLEAN = {"missing_keys": set(), "unexpected_keys": set(), "mismatched_keys": set()}
Foreign = Callable[[str], Path]


def as_bin(folder: Path) -> Path:
    """The same folder with its weights in a pytorch_model.bin."""
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


@pytest.mark.parametrize(
    "name", ["BertModel", "BertForPreTraining", "BertForSequenceClassification", "BertForTokenClassification"]
)
def test_a_bin_becomes_safetensors(foreign: Foreign, tmp_path: Path, name: str) -> None:
    source = as_bin(foreign(name))
    done = convert(source, tmp_path / "out")
    assert done.architecture == name
    theirs, info = getattr(transformers, name).from_pretrained(tmp_path / "out", output_loading_info=True)
    assert {key: set(info[key]) for key in CLEAN} == CLEAN
    assert verify(source, tmp_path / "out").largest == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "vocab.txt"} <= names
    assert theirs.config.vocab_size == 40 and done.parameters == sum(p.numel() for p in theirs.parameters())


def test_heads_that_are_not_used_here_come_along(tmp_path: Path) -> None:
    config = transformers.ElectraConfig(
        vocab_size=40, embedding_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8
    )
    transformers.ElectraForPreTraining(config).save_pretrained(tmp_path / "in")
    assert convert(tmp_path / "in", tmp_path / "out").architecture == "ElectraForPreTraining"
    _, info = transformers.ElectraForPreTraining.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert {key: set(info[key]) for key in CLEAN} == CLEAN
    found = verify(tmp_path / "in", tmp_path / "out")  # no tokenizer: on made-up pieces
    assert found.same and "replaced" in {one.what for one in found.differences}


def test_a_factorised_checkpoint_becomes_an_albert_of_its_own_layers(bundles: ModuleType, tmp_path: Path) -> None:
    """BERT's variables behind narrow embeddings; what they mean is written out here from the published formulas."""
    rng = torch.Generator().manual_seed(0)
    wide, narrow, inner, layers = 16, 8, 24, 3
    shapes = {
        "bert/embeddings/word_embeddings": (30, narrow),
        "bert/embeddings/token_type_embeddings": (2, narrow),
        "bert/embeddings/position_embeddings": (20, narrow),
        "bert/embeddings/LayerNorm/gamma": (narrow,),
        "bert/embeddings/LayerNorm/beta": (narrow,),
        "bert/encoder/embedding_hidden_mapping_in/kernel": (narrow, wide),
        "bert/encoder/embedding_hidden_mapping_in/bias": (wide,),
        "bert/pooler/dense/kernel": (wide, wide),
        "bert/pooler/dense/bias": (wide,),
    }
    for i in range(layers):
        layer = f"bert/encoder/layer_{i}"
        for name, size in {
            **{f"attention/self/{part}": (wide, wide) for part in ("query", "key", "value")},
            "attention/output/dense": (wide, wide),
            "intermediate/dense": (wide, inner),
            "output/dense": (inner, wide),
        }.items():
            shapes |= {f"{layer}/{name}/kernel": size, f"{layer}/{name}/bias": size[1:]}
        for norm in ("attention/output/LayerNorm", "output/LayerNorm"):
            shapes |= {f"{layer}/{norm}/gamma": (wide,), f"{layer}/{norm}/beta": (wide,)}
    tensors = {name: torch.empty(shape).normal_(0, 0.3, generator=rng) for name, shape in shapes.items()}
    slots = {f"{name}/adam_m": tensor for name, tensor in tensors.items()}
    source = tmp_path / "tensorflow"
    source.mkdir()
    bundles.write_bundle(source / "bert_model.ckpt", tensors | slots)
    config = {
        "vocab_size": 30, "hidden_size": wide, "embedding_size": narrow, "num_hidden_layers": layers,
        "num_attention_heads": 2, "intermediate_size": inner, "hidden_act": "gelu", "max_position_embeddings": 20,
        "type_vocab_size": 2, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    }  # fmt: skip
    (source / "bert_config.json").write_text(json.dumps(config))
    done = convert(source, tmp_path / "out")
    assert done.architecture == "AlbertModel"
    assert any(f"{len(tensors)} variables of the optimiser are left aside" in note for note in done.notes)
    model = transformers.AutoModel.from_pretrained(tmp_path / "out").eval()
    assert model.config.num_hidden_groups == layers
    ids = [3, 7, 29, 11]
    with torch.no_grad():
        theirs = model(torch.tensor([ids]), output_hidden_states=True)
        ours = load_encoder(read_folder(source))(flat_batch([ids]), hidden=range(layers + 1)).hidden
    for number, states in enumerate(theirs.hidden_states):
        torch.testing.assert_close(ours[number], states[0], atol=1e-5, rtol=0)
    # The first step by hand: norm of the sum, then the mapping as TensorFlow multiplies, x · kernel + bias.
    total = tensors["bert/embeddings/word_embeddings"][ids] + tensors["bert/embeddings/token_type_embeddings"][0]
    total = total + tensors["bert/embeddings/position_embeddings"][:4]
    gamma, beta = (tensors[f"bert/embeddings/LayerNorm/{leaf}"] for leaf in ("gamma", "beta"))
    first = torch.nn.functional.layer_norm(total, (narrow,), gamma, beta, 1e-12)
    mapping = "bert/encoder/embedding_hidden_mapping_in"
    torch.testing.assert_close(ours[0], first @ tensors[f"{mapping}/kernel"] + tensors[f"{mapping}/bias"])


def test_a_classifier_of_googles_has_as_many_labels_as_rows(bundles: ModuleType, tmp_path: Path) -> None:
    sizes = {"vocab_size": 30, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 8}
    model = transformers.BertForSequenceClassification(
        transformers.BertConfig(**sizes, num_hidden_layers=1, num_labels=3)
    )
    source, tensors = tmp_path / "tensorflow", dict[str, torch.Tensor]()
    source.mkdir()
    for name, tensor in model.state_dict().items():
        module, _, leaf = name.replace("layer.", "layer_").replace(".", "/").rpartition("/")
        if "_embeddings" in module:
            tensors[module] = tensor
        elif module == "classifier":
            tensors[f"output_{'weights' if leaf == 'weight' else leaf}"] = tensor
        elif "LayerNorm" in module:
            tensors[f"{module}/{'gamma' if leaf == 'weight' else 'beta'}"] = tensor
        else:
            tensors[f"{module}/{'kernel' if leaf == 'weight' else leaf}"] = tensor.T if leaf == "weight" else tensor
    bundles.write_bundle(source / "model.ckpt-9", tensors)
    (source / "bert_config.json").write_text(json.dumps({**sizes, "num_hidden_layers": 1}))
    assert convert(source, tmp_path / "out").architecture == "BertForSequenceClassification"
    theirs = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    assert torch.equal(theirs.classifier.weight, model.classifier.weight) and theirs.config.num_labels == 3


def test_a_damaged_source_leaves_nothing_behind(foreign: Foreign, tmp_path: Path) -> None:
    source = foreign("BertModel")
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | {"intermediate_size": 25}))
    with pytest.raises(HeedfulError, match="shape"):
        convert(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(HeedfulError, match="no such folder"):
        convert(tmp_path / "nowhere", tmp_path / "out")


def test_nothing_is_replaced_unasked(foreign: Foreign, tmp_path: Path) -> None:
    source = foreign("BertModel")
    convert(source, tmp_path / "out")
    with pytest.raises(HeedfulError):
        convert(source, tmp_path / "out")
    convert(source, tmp_path / "out", overwrite=True)


@pytest.fixture(scope="module")
def simbert(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """SimBERT-tiny as it was given out, and converted."""
    source = MODELS / "simbert-zh-tiny-tf1"
    if not source.is_dir():
        pytest.skip("needs $HEEDFUL_MODELS with simbert-zh-tiny-tf1 in it")
    target = tmp_path_factory.mktemp("simbert") / "out"
    assert convert(source, target).architecture == "AlbertForMaskedLM"
    return source, target


def test_simbert_knows_a_paraphrase_in_both_formats(simbert: tuple[Path, Path]) -> None:
    texts = ["微信和支付宝哪个好", "支付宝和微信哪个更好", "今天天气怎么样"]
    found = [heedful.load(folder, "cpu").similarity(texts, pooling="cls") for folder in simbert]
    np.testing.assert_array_equal(*found)
    assert found[0][0, 1] > found[0][0, 2] + 0.1


def test_simberts_states_are_those_of_transformers(simbert: tuple[Path, Path]) -> None:
    source, target = simbert
    model = transformers.AlbertModel.from_pretrained(target).eval()
    tokenizer = read_folder(source).require_tokenizer()
    ids = tokenizer.encode("微信和支付宝哪个好").ids
    assert ids == transformers.AutoTokenizer.from_pretrained(target)("微信和支付宝哪个好")["input_ids"]
    with torch.no_grad():
        theirs = model(torch.tensor([ids]), output_hidden_states=True)
        encoder = load_encoder(read_folder(source))
        ours = encoder(flat_batch([ids]), hidden=range(5)).hidden
    for number, states in enumerate(theirs.hidden_states):
        torch.testing.assert_close(ours[number], states[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(encoder.pool(ours[4][:1]), theirs.pooler_output, atol=1e-5, rtol=0)


def test_an_index_without_its_data_is_refused_and_named(tmp_path: Path) -> None:
    source = MODELS / "google-index-only" / "bert-chinese"
    if not source.is_dir():
        pytest.skip("needs $HEEDFUL_MODELS with google-index-only in it")
    copy = shutil.copytree(source, tmp_path / "in")
    config = {"vocab_size": 21128, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
    if not any(copy.glob("*config.json")):
        (copy / "bert_config.json").write_text(json.dumps(config | {"intermediate_size": 3072}))
    with pytest.raises(HeedfulError, match=r"bert_model\.ckpt\.data-00000-of-00001 is absent"):
        convert(copy, tmp_path / "out")
