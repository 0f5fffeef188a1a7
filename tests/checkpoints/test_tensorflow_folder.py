"""Google's folders: a TensorFlow checkpoint gives the states that transformers computes from the same weights."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
import transformers

import heedful
from heedful.checkpoints.bert_names import BERT_NAMES
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.sorted_table import read_table
from heedful.checkpoints.tensorflow_folder import config_values
from heedful.checkpoints.tensorflow_names import ALBERT, BERT, FACTORISED, TensorflowNames, of_optimiser
from heedful.checkpoints.tensors import open_tensors
from heedful.checkpoints.weights import fill_parameters, source
from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.json_files import write_json
from heedful.models.bert import BertConfig, BertForPretraining

MODELS = Path(os.environ.get("HEEDFUL_MODELS", ""))


def as_google(name: str, tensor: torch.Tensor) -> tuple[str, torch.Tensor]:
    """A tensor of transformers as Google's program names and lays it out, written from its source and not our table."""
    for theirs, googles in (
        ("layer.", "layer_"),
        ("LayerNorm.weight", "LayerNorm.gamma"),
        ("LayerNorm.bias", "LayerNorm.beta"),
    ):
        name = name.replace(theirs, googles)
    if name.endswith("_embeddings.weight"):
        return name.removesuffix(".weight").replace(".", "/"), tensor
    if name in ("cls.seq_relationship.weight", "cls.seq_relationship.bias", "cls.predictions.bias"):
        place, _, leaf = name.rpartition(".")
        return f"{place}.output_{'weights' if leaf == 'weight' else 'bias'}".replace(".", "/"), tensor
    if name.endswith(".weight"):
        return name.removesuffix("weight").replace(".", "/") + "kernel", tensor.t()
    return name.replace(".", "/"), tensor


@pytest.fixture
def google(foreign: Callable[[str], Path], bundles: ModuleType, tmp_path: Path) -> tuple[Path, Path]:
    """A folder of transformers, and the same model as Google would have written it after training."""
    theirs, folder = foreign("BertForPreTraining"), tmp_path / "google"
    folder.mkdir()
    model = transformers.BertForPreTraining.from_pretrained(theirs)
    variables = dict(as_google(name, tensor) for name, tensor in model.named_parameters() if "decoder" not in name)
    slots = {f"{name}/{slot}": tensor for name, tensor in variables.items() for slot in ("adam_m", "adam_v")}
    bundles.write_bundle(
        folder / "bert_model.ckpt",
        {name: tensor.detach() for name, tensor in (variables | slots).items()} | {"global_step": torch.tensor(9)},
        shards=2,
    )
    config = json.loads((theirs / "config.json").read_text())
    sizes = {
        key: value
        for key, value in config.items()
        if key.endswith("_size") or key.startswith(("num_", "max_", "hidden_"))
    }
    (folder / "bert_config.json").write_text(json.dumps(sizes))
    return theirs, folder


def loaded(folder: Path) -> BertForPretraining:
    """The model that a Google folder describes, filled with its checkpoint."""
    fields = {field.name for field in dataclasses.fields(BertConfig)}
    model = BertForPretraining(BertConfig(**{k: v for k, v in config_values(folder).items() if k in fields})).eval()
    with open_tensors(folder) as tensors:
        fill_parameters(model, source(tensors, BERT_NAMES))
    return model


def test_hidden_states_and_heads_are_those_of_transformers(google: tuple[Path, Path]) -> None:
    theirs, folder = google
    model = loaded(folder)
    layers = model.encoder.config.num_hidden_layers
    ids = [2, 9, 10, 30, 3]
    with torch.no_grad():
        states = model.encoder(flat_batch([ids]), hidden=range(layers + 1)).hidden
        expected = transformers.BertForPreTraining.from_pretrained(theirs)(
            torch.tensor([ids]), output_hidden_states=True
        )
    for number, layer in enumerate(expected.hidden_states):
        torch.testing.assert_close(states[number], layer[0], atol=1e-5, rtol=0)
    logits = model.mlm(states[layers], model.encoder.embeddings.token.weight)
    torch.testing.assert_close(logits, expected.prediction_logits[0], atol=1e-4, rtol=0)


def test_every_tensor_is_there_and_the_optimiser_is_counted(google: tuple[Path, Path]) -> None:
    theirs, folder = google
    with open_tensors(folder) as ours, open_tensors(theirs) as wanted:
        assert set(ours) == set(wanted)
        for name in wanted:
            assert ours.shape(name) == wanted.shape(name) and torch.equal(ours.read(name), wanted.read(name)), name
        assert ours.notes == (f"{2 * len(set(ours)) + 1} variables of the optimiser are left aside",)
        assert "bert_model.ckpt.data-0000" in ours.where("bert.pooler.dense.weight")
        assert ours.where("bert.pooler.dense.weight").endswith("bert/pooler/dense/kernel")


def test_a_checkpoint_beside_a_config_json_embeds_as_transformers_weights_do(google: tuple[Path, Path]) -> None:
    theirs, folder = google
    write_json(folder / "config.json", config_values(folder))
    (folder / "vocab.txt").write_bytes((theirs / "vocab.txt").read_bytes())
    texts = ["abc", "hag gab"]
    ours, wanted = (heedful.load(one, "cpu").embed(texts) for one in (folder, theirs))
    assert (ours == wanted).all()
    assert any("variables of the optimiser" in note for note in read_folder(folder).notes)


def test_several_checkpoints_are_refused(google: tuple[Path, Path], bundles: ModuleType) -> None:
    _, folder = google
    bundles.write_bundle(folder / "model.ckpt-100", {"a": torch.ones(1)})
    with (
        pytest.raises(HeedfulError, match=r"several checkpoints: bert_model\.ckpt, model\.ckpt-100"),
        open_tensors(folder),
    ):
        pass


def test_another_config_is_refused(google: tuple[Path, Path]) -> None:
    _, folder = google
    file = folder / "bert_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"intermediate_size": 28}))
    asked = r"intermediate.dense.* has the shape \[24, 16\], but bert_config.json asks for \[28, 16\]"
    with pytest.raises(HeedfulError, match=asked) as caught:
        loaded(folder)
    assert "bert_model.ckpt.data" in str(caught.value.where)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"num_hidden_layers": 3}))
    with pytest.raises(HeedfulError, match=r"bert_config.json asks for 3 layers, the weights hold 2"):
        read_folder(folder)


def test_a_vocabulary_of_another_size_is_refused_by_its_file(google: tuple[Path, Path]) -> None:
    theirs, folder = google
    pieces = (theirs / "vocab.txt").read_text(encoding="utf-8").splitlines()
    others = [chr(ord("一") + number) for number in range(41 - len(pieces))]
    (folder / "vocab.txt").write_text("\n".join([*pieces, *others]), encoding="utf-8")
    with pytest.raises(HeedfulError, match="41 pieces, but the model has only 40 rows") as caught:
        read_folder(folder)
    assert caught.value.where == folder / "vocab.txt"


def test_a_task_is_missed_in_googles_words(google: tuple[Path, Path]) -> None:
    theirs, folder = google
    (folder / "vocab.txt").write_bytes((theirs / "vocab.txt").read_bytes())
    with pytest.raises(HeedfulError, match="not fine-tuned for a task") as caught:
        heedful.load(folder, "cpu").predict(["a"])
    assert caught.value.where == folder / "bert_config.json"


def test_hugging_faces_config_goes_first(google: tuple[Path, Path]) -> None:
    _, folder = google
    (folder / "config.json").write_text('{"model_type": "other"}')
    assert config_values(folder) == {"model_type": "other"}


def test_the_words_of_googles_albert(tmp_path: Path) -> None:
    sizes = {"hidden_size": 16, "embedding_size": 8, "num_hidden_layers": 3, "hidden_act": "gelu"}
    (tmp_path / "albert_config.json").write_text(json.dumps(sizes | {"num_hidden_groups": 1}))
    said = config_values(tmp_path)
    assert (said["model_type"], said["num_hidden_groups"], said["inner_group_num"]) == ("albert", 1, 1)
    assert said["hidden_act"] == "gelu_new"  # its program has the tanh
    (tmp_path / "albert_config.json").write_text(json.dumps(sizes))  # SimBERT-tiny
    assert (config_values(tmp_path)["num_hidden_groups"], config_values(tmp_path)["hidden_act"]) == (3, "gelu")


def test_no_config_at_all(tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match=r"no config\.json \(or bert_config\.json\)"):
        config_values(tmp_path)


@pytest.mark.parametrize(
    ("name", "optimiser"),
    [
        ("bert/pooler/dense/kernel/adam_m", True),
        ("bert/pooler/dense/kernel/adam_v", True),
        ("bert/pooler/dense/bias/AdamWeightDecayOptimizer_1", True),
        ("bert/pooler/dense/bias/Adam", True),
        ("global_step", True),
        ("beta1_power", True),
        ("bert/pooler/dense/kernel", False),
        ("bert/embeddings/LayerNorm/beta", False),
    ],
)
def test_what_is_of_the_optimiser(name: str, optimiser: bool) -> None:
    assert of_optimiser(name) == optimiser


@pytest.mark.parametrize(
    ("table", "name", "spelled"),
    [
        (BERT, "bert/encoder/layer_11/output/dense/kernel", ("bert.encoder.layer.11.output.dense.weight", True)),
        (BERT, "output_weights", ("classifier.weight", False)),
        (BERT, "cls/squad/output_bias", ("qa_outputs.bias", False)),
        (BERT, "bert/encoder/layer_1/adapter/kernel", ("bert.encoder.layer_1.adapter.kernel", False)),
        (BERT, "bert/pooler/dense/gammas", ("bert.pooler.dense.gammas", False)),
    ],
)
def test_single_names(table: TensorflowNames, name: str, spelled: tuple[str, bool]) -> None:
    assert table.spelled(name) == spelled


def filled(text: str, layers: int) -> set[str]:
    return {text.format(*numbers) for numbers in ([str(i), "0"] for i in range(layers))}


@pytest.mark.parametrize(
    ("table", "architecture", "layers"),
    [(BERT, "BertForPreTraining", 2), (FACTORISED, "AlbertForPreTraining", 3), (ALBERT, "AlbertForPreTraining", 1)],
)
def test_a_table_names_each_tensor_of_transformers_once(table: TensorflowNames, architecture: str, layers: int) -> None:
    sizes = {"vocab_size": 9, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8}
    config = getattr(transformers, architecture).config_class(
        num_hidden_layers=layers, num_hidden_groups=layers, **sizes
    )
    parameters = {name for name, _ in getattr(transformers, architecture)(config).named_parameters()}
    named = [
        f"{one}.{leaf}"
        for module in table.modules.values()
        for one in filled(module, layers)
        for leaf in ("weight", "bias")
    ]
    named += [name for name in table.tensors.values() if not name.startswith(("classifier", "qa_outputs"))]
    assert len(named) == len(set(named))
    assert {name for name in parameters if "decoder" not in name} == set(named)


def test_an_index_of_google_without_its_data() -> None:
    folder = MODELS / "google-index-only" / "bert-chinese"
    if not folder.is_dir():
        pytest.skip("needs $HEEDFUL_MODELS with google-index-only in it")
    with (
        pytest.raises(HeedfulError, match=r"data file bert_model\.ckpt\.data-00000-of-00001 is absent"),
        open_tensors(folder),
    ):
        pass
    named = {BERT.spelled(key.decode())[0] for key in read_table(folder / "bert_model.ckpt.index") if key}
    assert len(named) == 206 and all(BERT_NAMES.knows(name) for name in named)


@pytest.fixture(scope="module")
def simbert() -> transformers.AlbertForPreTraining:
    """SimBERT-tiny in transformers, from our tensors and our config."""
    folder = MODELS / "simbert-zh-tiny-tf1"
    if not folder.is_dir():
        pytest.skip("needs $HEEDFUL_MODELS with simbert-zh-tiny-tf1 in it")
    model = transformers.AlbertForPreTraining(transformers.AlbertConfig(**config_values(folder))).eval()
    with open_tensors(folder) as tensors:
        state = {name: tensors.read(name).float() for name in tensors}
    missing = model.load_state_dict(state, strict=False)
    assert not missing.unexpected_keys
    assert all(name.startswith(("predictions.decoder.", "sop_classifier.")) for name in missing.missing_keys)
    model.tie_weights()
    return model


def test_simbert_knows_a_paraphrase(simbert: transformers.AlbertForPreTraining) -> None:
    pieces = {
        piece: i for i, piece in enumerate((MODELS / "simbert-zh-tiny-tf1" / "vocab.txt").read_text().splitlines())
    }

    def vector(text: str) -> torch.Tensor:
        ids = torch.tensor([[pieces["[CLS]"], *(pieces[character] for character in text), pieces["[SEP]"]]])
        with torch.no_grad():
            return simbert.albert(ids).pooler_output[0]

    question, paraphrase, other = map(vector, ("微信和支付宝哪个好", "支付宝和微信哪个更好", "今天天气怎么样"))
    alike, unlike = (float(torch.cosine_similarity(question, one, dim=0)) for one in (paraphrase, other))
    assert alike > unlike + 0.5
