"""Models for ONNX Runtime: what they say is what ours say, on padded texts of several lengths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.sentence_dense import read_dense
from heedful.checkpoints.sentence_transformers import SentenceSettings
from heedful.checkpoints.task_folder import save_for_task
from heedful.checkpoints.tensors import write_tensors
from heedful.checkpoints.vector_files import NamedVectors
from heedful.cli.main import cli
from heedful.config import to_mapping
from heedful.errors import HeedfulError
from heedful.export.onnx_file import write_onnx
from heedful.export.padded import PaddedEncoder, PaddedHead, padded_pool
from heedful.inference.embedder import Embedder
from heedful.inference.load import load, predictor
from heedful.inference.onnx_export import export_onnx
from heedful.inference.static_vectors import save_as_model
from heedful.inference.verification import verify
from heedful.json_files import write_json
from heedful.models.albert import AlbertConfig
from heedful.models.distilbert import DistilBertConfig
from heedful.models.electra import ElectraConfig
from heedful.models.elmo import ElmoConfig
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.ernie import ErnieConfig
from heedful.models.gpt import GptConfig
from heedful.models.heads import SentenceEncoder, Tagger
from heedful.models.lstm_lm import LstmConfig
from heedful.models.modernbert import ModernBertConfig
from heedful.models.mpnet import MPNetConfig
from heedful.models.roberta import RobertaConfig
from heedful.models.xlnet import XlnetConfig
from heedful.nn.pooling import POOLINGS, pool
from heedful.serving.catalogue import read_catalogue
from heedful.serving.settings import ServeSettings
from heedful.tasks.answer import Answer
from heedful.tasks.choose import Choose
from heedful.tasks.classify import Classify
from heedful.tasks.tag import Tag
from heedful.tasks.task import Task
from heedful.text.tokenizer import Tokenizer
from tests.export.small_models import TEXTS, as_its_readme_says, encoder, rounded, stirred, words
from tests.gpt_folder import byte_level_tokenizer


def near_sighted() -> Encoder:
    """A ModernBERT with a layer whose window is shorter than a text, and longer than what the exporter is shown."""
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    return stirred(ModernBertConfig(14, **small, local_attention=8, global_attn_every_n_layers=2).build())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("onnx")
    (scratch / "dense").mkdir()
    layer = torch.nn.Linear(16, 6)
    write_json(scratch / "dense" / "config.json", {"in_features": 16, "out_features": 6})
    write_tensors(scratch / "dense", {f"linear.{name}": tensor for name, tensor in layer.state_dict().items()})
    sentence = SentenceSettings("mean", True, {}, (read_dense(scratch / "dense"),))
    save_model(encoder(), scratch / "model", words(), sentence=sentence, max_length=32)
    return scratch / "model"


def embedder(path: Path, engine: str = "auto") -> Embedder:
    found = load(path, engine=engine)
    assert isinstance(found, Embedder)
    return found


@pytest.mark.parametrize("how", POOLINGS)
def test_pooling_over_padded_texts_is_that_over_flat_ones(how: str) -> None:
    lengths, width = (3, 1, 4), 5
    flat = torch.randn(sum(lengths), width)
    mask = torch.arange(4)[None] < torch.tensor(lengths)[:, None]
    block = torch.full((3, 4, width), 99.0)
    block[mask] = flat
    torch.testing.assert_close(padded_pool(block, mask.long(), how), pool(flat, lengths, how))


def test_an_encoder_is_written_and_answers_as_before(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = CliRunner().invoke(cli, ["export", str(folder), "--to", "onnx", "-o", str(tmp_path / "exported")])
    assert done.exit_code == 0, done.output
    assert "largest difference" in done.stderr
    assert not list((tmp_path / "exported").glob("*.safetensors"))
    ours, theirs = embedder(folder), embedder(tmp_path / "exported")
    np.testing.assert_allclose(theirs.embed(TEXTS), ours.embed(TEXTS), atol=1e-5)
    for mine, other in zip(ours.embed(TEXTS, unit="token"), theirs.embed(TEXTS, unit="token"), strict=True):
        np.testing.assert_allclose(other, mine, atol=1e-5)
    with pytest.raises(HeedfulError, match="last layer only"):
        theirs.embed(TEXTS, layers=[0])
    said = as_its_readme_says(tmp_path / "exported", TEXTS, monkeypatch)
    np.testing.assert_allclose(said["sentence_embedding"], ours.embed(TEXTS, normalize=True), atol=1e-5)
    assert said["last_hidden_state"].shape == (len(TEXTS), 12, 16)
    same = verify(folder, tmp_path / "exported", TEXTS)
    assert same.same and [one.what for one in same.differences] == ["layer 2", "sentence vectors"]
    with pytest.raises(HeedfulError, match=r"no weights that heedful's own engine(.|\n)*exported"):
        embedder(tmp_path / "exported", "heedful")
    with pytest.raises(HeedfulError, match="precision it was exported in"):
        load(tmp_path / "exported", precision="int8")
    with pytest.raises(HeedfulError, match=r"not enough here(.|\n)*the folder that it was exported from"):
        embedder(tmp_path / "exported").fill("the [MASK]")


def test_a_file_beside_the_weights_is_used_where_it_is_asked_for(tmp_path: Path) -> None:
    small = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24}
    model = stirred(AlbertConfig(14, embedding_size=8, **small).build())
    save_model(model, tmp_path / "model", words())
    command = ["export", str(tmp_path / "model"), "--to", "onnx", "--precision", "int8"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0 and "model.onnx: int8 for ONNX Runtime; beside ours: largest difference" in done.stderr
    assert "already" in str(CliRunner().invoke(cli, command).exception)
    ours, theirs = embedder(tmp_path / "model"), embedder(tmp_path / "model", "onnxruntime")
    assert ours.embed(TEXTS, layers=[0]).shape == (len(TEXTS), 16)  # type: ignore[union-attr]
    difference = np.abs(np.subtract(ours.embed(TEXTS), theirs.embed(TEXTS))).max()
    assert 1e-4 < difference < 0.5  # the int8 of the file
    lines, vectors = tmp_path / "lines.txt", tmp_path / "v.npy"
    lines.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    command = ["embed", str(tmp_path / "model"), str(lines), "-o", str(vectors), "--engine", "onnxruntime"]
    assert CliRunner().invoke(cli, command).exit_code == 0
    np.testing.assert_allclose(np.load(vectors), theirs.embed(TEXTS), atol=1e-6)
    (live,) = read_catalogue({"model": str(tmp_path / "model")}, ServeSettings(engine="onnxruntime")).models.values()
    np.testing.assert_allclose(live.model.embed(TEXTS), theirs.embed(TEXTS), atol=1e-6)
    with pytest.raises(HeedfulError, match="no engine is called 'onnx'"):
        load(tmp_path / "model", engine="onnx")


def test_a_classifier_and_a_tagger_say_what_they_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    classify, tag = Classify(labels=("x", "y", "z"), pooling="mean"), Tag(labels=("B-X", "I-X", "O"))
    for task in (classify, tag):
        plain, exported = tmp_path / task.name, tmp_path / f"{task.name}-exported"
        model = task.model(encoder() if task is classify else near_sighted())
        described = {"task": task.name, "labels": list(task.labels), "max_length": 32}
        described |= {"pooling": "mean"} if task is classify else {}
        save_for_task(model, plain, words(), task=described, architecture=None, labels=task.labels)
        ours = predictor(plain).predict(TEXTS)
        if task is tag:  # exported for now
            assert rounded(predictor(plain, engine="onnxruntime").predict(TEXTS)) == rounded(ours)
            continue
        export_onnx(read_folder(plain), exported)
        assert rounded(predictor(exported).predict(TEXTS)) == rounded(ours)
        assert verify(plain, exported, TEXTS).same
        np.testing.assert_allclose(embedder(exported).embed(TEXTS), embedder(plain).embed(TEXTS), atol=1e-5)
        assert rounded(embedder(exported).predict(TEXTS)) == rounded(ours)
        assert as_its_readme_says(exported, TEXTS, monkeypatch)["logits"].shape == (len(TEXTS), 3)
        said = CliRunner().invoke(cli, ["predict", str(exported), "a b c", "--engine", "onnxruntime"])
        assert rounded(json.loads(said.stdout)) == rounded(ours[0])


def test_a_crf_goes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    task = Tag(labels=("B-X", "I-X", "O"), head="crf")
    model = task.model(encoder())
    assert isinstance(model, Tagger) and model.crf is not None
    for scores in model.crf.parameters():
        torch.nn.init.normal_(scores, std=3)  # else the likeliest labels are the best path
    described = {"task": "tag", "labels": list(task.labels), "max_length": 32, "head": "crf"}
    save_for_task(model, tmp_path / "m", words(), task=described, architecture=None, labels=task.labels)
    export_onnx(read_folder(tmp_path / "m"), tmp_path / "exported")
    ours, theirs = (predictor(tmp_path / name).predict(TEXTS) for name in ("m", "exported"))
    assert rounded(theirs) == rounded(ours)
    said = as_its_readme_says(tmp_path / "exported", TEXTS, monkeypatch)
    assert said["crf"].shape == (5, 3) and said["crf"][0, 1] < -1e8  # no path may start inside an entity
    by_label = said["logits"].argmax(-1)
    assert any(task.labels[by_label[0, 1 + n]] != label for n, label in enumerate(ours[0]["labels"]))


def test_answers_and_choices_of_other_families(tmp_path: Path) -> None:
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    asked: dict[str, tuple[Task[Any], EncoderConfig, Any]] = {
        "answer": (Answer(max_length=16), MPNetConfig(14, **small), {"question": "a b", "context": "c d e f g h"}),
        "choose": (Choose(), RobertaConfig(14, **small), {"question": "a b", "endings": ["c d e", "f"]}),
    }
    for name, (task, config, given) in asked.items():
        model, settings = task.model(stirred(config.build())), {"task": name, **to_mapping(task)}
        save_for_task(model, tmp_path / name, words(), task=settings, architecture=None)
        ours = predictor(tmp_path / name).predict([given])
        assert rounded(predictor(tmp_path / name, engine="onnxruntime").predict([given])) == rounded(ours)


def test_every_other_family_is_written(tmp_path: Path) -> None:
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    own = byte_level_tokenizer()
    of_families: tuple[tuple[EncoderConfig, Tokenizer], ...] = (
        (DistilBertConfig(14, dim=16, n_layers=1, n_heads=2, hidden_dim=24), words()),
        (ElectraConfig(14, embedding_size=8, **small), words()),
        (ErnieConfig(14, use_task_id=True, **small), words()),
        (GptConfig(own.vocab_size, n_embd=16, n_layer=1, n_head=2), own),
        (LstmConfig(14, width=16, layers=2), words()),
    )
    for config, tokenizer in of_families:
        plain, exported = tmp_path / config.model_type, tmp_path / f"{config.model_type}-exported"
        save_model(stirred(config.build()), plain, tokenizer)
        export_onnx(read_folder(plain), exported)
        np.testing.assert_allclose(embedder(exported).embed(TEXTS[:3:2]), embedder(plain).embed(TEXTS[:3:2]), atol=1e-5)


def test_words_without_a_vector_are_no_difference(tmp_path: Path) -> None:
    vectors = NamedVectors(["the", "dog"], np.eye(2, 8, dtype=np.float32))
    save_as_model(vectors, tmp_path / "words")
    assert export_onnx(read_folder(tmp_path / "words"), tmp_path / "exported").cosine == pytest.approx(1)
    np.testing.assert_allclose(embedder(tmp_path / "exported").embed(["the cat", "?"])[:, 0], [0.5, 0], atol=1e-6)


def test_compared_pairs_get_the_same_answers(tmp_path: Path) -> None:
    task, pairs = Classify(labels=("x", "y"), pooling="compare"), [(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[0])]
    described = {"task": "classify", "labels": ["x", "y"], "max_length": 32, "pooling": "compare"}
    save_for_task(task.model(encoder()), tmp_path / "m", words(), task=described, architecture=None, labels=task.labels)
    ours = predictor(tmp_path / "m")
    assert rounded(predictor(tmp_path / "m", engine="onnxruntime").predict(pairs)) == rounded(ours.predict(pairs))
    with pytest.raises(HeedfulError, match="no second text"):
        ours.predict(TEXTS)


def test_what_cannot_be_written_is_refused_and_nothing_is_left(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(HeedfulError, match=r"one's own has no known way(.|\n)*built-in"):
        PaddedHead(SentenceEncoder(encoder()))
    with pytest.raises(HeedfulError, match="no precision 'int4'"):
        export_onnx(read_folder(folder), tmp_path / "out", "int4")
    xlnet = XlnetConfig(14, d_model=16, n_layer=1, n_head=2, d_inner=16).build()
    with pytest.raises(HeedfulError, match="a model of the type xlnet as ONNX"):
        write_onnx(PaddedEncoder(xlnet, "last", False), tmp_path / "model.onnx")
    lstm = LstmConfig(vocab_size=14, width=8, layers=1).build()
    with pytest.raises(HeedfulError, match="a model of the type lstm-lm is not computed in int8"):
        write_onnx(PaddedEncoder(lstm, "last", False), tmp_path / "model.onnx", "int8")
    capfd.readouterr()
    elmo = ElmoConfig(character_width=4, filters=((1, 4),), highways=1, projection=8, lstm_width=8, layers=1).build()
    with pytest.raises(HeedfulError, match="a model of the type elmo as ONNX"):
        write_onnx(PaddedEncoder(elmo, "last", False), tmp_path / "model.onnx")
    assert not any(capfd.readouterr())  # torch would print the graph
    forward = PaddedEncoder.forward

    def wrong(
        self: PaddedEncoder, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> object:
        return forward(self, input_ids, torch.ones_like(attention_mask), token_type_ids)  # looks at padding

    monkeypatch.setattr(PaddedEncoder, "forward", wrong)
    with pytest.raises(HeedfulError, match="not the same"):
        export_onnx(read_folder(folder), tmp_path / "out")
    assert not list(tmp_path.iterdir())
