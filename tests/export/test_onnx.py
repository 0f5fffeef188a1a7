"""Models for ONNX Runtime: what they say is what ours say, on padded texts of several lengths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.sentence_transformers import SentenceSettings
from heedful.checkpoints.task_folder import save_for_task
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.export.padded import PaddedEncoder, PaddedHead, padded_pool
from heedful.inference.embedder import Embedder
from heedful.inference.load import load, predictor
from heedful.inference.onnx_export import export_onnx
from heedful.models.bert import Bert, BertConfig, initialise
from heedful.models.heads import Tagger
from heedful.nn.pooling import POOLINGS, pool
from heedful.tasks.classify import Classify
from heedful.tasks.tag import Tag
from heedful.text.bert_pipeline import SPECIAL_TOKENS, wordpiece_tokenizer
from heedful.text.tokenizer import Tokenizer

TEXTS = ["a b c", "", "h", "g f e d c b a a b c", "中 a"]
CONFIG = BertConfig(
    14, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, max_position_embeddings=32
)


def words() -> Tokenizer:
    pieces = [*SPECIAL_TOKENS.values(), *"abcdefgh", "中"]
    return Tokenizer(wordpiece_tokenizer({piece: i for i, piece in enumerate(pieces)}, lowercase=True))


def encoder() -> Bert:
    model = Bert(CONFIG)
    initialise(model, CONFIG, 0)
    torch.manual_seed(0)
    for parameter in model.parameters():  # larger than a fresh start, so that attention differs from a mean
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("onnx") / "model"
    save_model(encoder(), path, words(), sentence=SentenceSettings("mean", True), max_length=32)
    return path


def embedder(path: Path) -> Embedder:
    found = load(path)
    assert isinstance(found, Embedder)
    return found


def rounded(said: Any) -> Any:
    """The same with every number to three places."""
    if isinstance(said, dict):
        return {key: rounded(value) for key, value in said.items()}
    if isinstance(said, list | tuple):
        return [rounded(value) for value in said]
    return round(said, 3) if isinstance(said, float) else said


@pytest.mark.parametrize("how", POOLINGS)
def test_pooling_over_padded_texts_is_that_over_flat_ones(how: str) -> None:
    lengths, width = (3, 1, 4), 5
    flat = torch.randn(sum(lengths), width)
    mask = torch.arange(4)[None] < torch.tensor(lengths)[:, None]
    block = torch.full((3, 4, width), 99.0)
    block[mask] = flat
    torch.testing.assert_close(padded_pool(block, mask.long(), how), pool(flat, lengths, how))


def test_an_encoder_is_written_and_answers_as_before(folder: Path, tmp_path: Path) -> None:
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
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(tmp_path / "exported" / "model.onnx"))
    encoded = words().encode_batch(["a b c"])[0]
    one = np.array([encoded.ids])
    given = {"input_ids": one, "attention_mask": np.ones_like(one), "token_type_ids": np.zeros_like(one)}
    states, vectors = session.run(None, {i.name: given[i.name] for i in session.get_inputs()})
    assert states.shape == (1, 5, 16)
    np.testing.assert_allclose(vectors, ours.embed(["a b c"], normalize=True), atol=1e-5)
    small = export_onnx(read_folder(folder), tmp_path / "small", "int8")
    assert 0.9 < small.cosine < 1 and small.largest > 1e-4
    assert (tmp_path / "small" / "model.onnx").stat().st_size < (tmp_path / "exported" / "model.onnx").stat().st_size


def test_a_classifier_and_a_tagger_say_what_they_said(tmp_path: Path) -> None:
    torch.manual_seed(1)
    classify, tag = Classify(labels=("x", "y", "z"), pooling="mean"), Tag(labels=("B-X", "I-X", "O"))
    for task in (classify, tag):
        plain, exported = tmp_path / task.name, tmp_path / f"{task.name}-exported"
        model = task.model(encoder())
        described = {"task": task.name, "labels": list(task.labels), "max_length": 32}
        described |= {"pooling": "mean"} if task is classify else {}
        save_for_task(model, plain, words(), task=described, architecture=None, labels=task.labels)
        export_onnx(read_folder(plain), exported)
        ours, theirs = predictor(plain).predict(TEXTS), predictor(exported).predict(TEXTS)
        assert rounded(theirs) == rounded(ours)


def test_what_cannot_be_written_is_refused_and_nothing_is_left(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HeedfulError, match="BiLSTM or a CRF"):
        PaddedHead(Tagger(encoder(), 3, "crf"))
    with pytest.raises(HeedfulError, match="no precision 'int4'"):
        export_onnx(read_folder(folder), tmp_path / "out", "int4")
    forward = PaddedEncoder.forward

    def wrong(
        self: PaddedEncoder, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> object:
        return forward(self, input_ids, torch.ones_like(attention_mask), token_type_ids)  # looks at padding

    monkeypatch.setattr(PaddedEncoder, "forward", wrong)
    with pytest.raises(HeedfulError, match="not the same"):
        export_onnx(read_folder(folder), tmp_path / "out")
    assert not list(tmp_path.iterdir())
