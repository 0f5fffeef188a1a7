"""Taggers with a BiLSTM for ONNX Runtime: they read the words of a text, of which the graph has to be told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from click.testing import CliRunner

from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import save_for_task
from heedful.cli.main import cli
from heedful.config import to_mapping
from heedful.errors import HeedfulError
from heedful.export.padded import over_words
from heedful.inference.load import load, predictor
from heedful.inference.onnx_engine import Session
from heedful.inference.onnx_export import export_onnx
from heedful.inference.verification import verify
from heedful.nn.recurrent import over_runs
from heedful.tasks.items import outputs_of
from heedful.tasks.tag import Tag
from heedful.tasks.task import Prediction
from heedful.text.bert_pipeline import SPECIAL_TOKENS, wordpiece_tokenizer
from heedful.text.tokenizer import Tokenizer
from tests.export.small_models import as_its_readme_says, encoder

# Of several pieces a word, of one word, of none, and one longer than a window, which then begins in the midst of it.
TEXTS = ["abc d eab", "f", "", "cab", "d e abbc " * 9, "a b c d e f"]
LABELS = ("O", "B-X", "I-X")
TAGGERS = {
    "bilstm": Tag(labels=LABELS, head="bilstm", lstm_width=6, max_length=16),
    "two-over-a-mix-with-crf": Tag(
        labels=LABELS,
        head="bilstm-crf",
        lstm_width=5,
        lstm_layers=2,
        max_length=16,
        features=(-1, 1),
        combine="mix",
    ),
}


def tokenizer() -> Tokenizer:
    """One that makes several pieces of a word."""
    pieces = [*SPECIAL_TOKENS.values(), *"abcdef", *("##a", "##b", "##c")]
    return Tokenizer(wordpiece_tokenizer({piece: i for i, piece in enumerate(pieces)}, lowercase=True))


@pytest.fixture(scope="module", params=TAGGERS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger of which what it says of a word depends on all words of its text."""
    task, rng = TAGGERS[request.param], torch.Generator().manual_seed(1)
    model = task.model(encoder())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.fill_(1.0)
            if not name.startswith("encoder.") or name.endswith("token.weight"):
                parameter.normal_(0.0, 1.0, generator=rng)
    path: Path = tmp_path_factory.mktemp("taggers") / str(request.param)
    save_for_task(model, path, tokenizer(), task={"task": "tag", **to_mapping(task)}, architecture=None, labels=LABELS)
    return path


@pytest.fixture(scope="module")
def exported(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / folder.name
    assert export_onnx(read_folder(folder), path).largest < 1e-5
    return path


def assert_alike(theirs: Sequence[Prediction], ours: Sequence[Prediction], distance: float = 1e-5) -> None:
    """The same labels and entities, with probabilities that are this close."""
    for one, other in zip(theirs, ours, strict=True):
        assert one["labels"] == other["labels"]
        assert [entity["start"] for entity in one["entities"]] == [entity["start"] for entity in other["entities"]]
        np.testing.assert_allclose(one["probabilities"], other["probabilities"], atol=distance)


def test_the_answers_are_those_of_our_own_engine(folder: Path, exported: Path) -> None:
    ours, theirs = predictor(folder).predict(TEXTS), predictor(exported)
    assert np.std([probability for said in ours for probability in said["probabilities"]]) > 0.02
    assert_alike(theirs.predict(TEXTS), ours)
    assert_alike([theirs.predict([text])[0] for text in TEXTS], ours)  # alone, where nothing is padded
    graph = onnx.load(str(exported / "model.onnx")).graph
    assert [one.name for one in graph.input] == ["input_ids", "attention_mask", "token_type_ids", "word_mask"]
    same = verify(folder, exported, TEXTS)
    assert same.same and [one.what for one in same.differences] == ["layer 2", "head of the task tag"]


def test_every_verb_takes_the_folder(folder: Path, exported: Path, tmp_path: Path) -> None:
    data = tmp_path / "dev.txt"
    data.write_text("abc B-X\nd O\neab B-X\n\nf O\n\na O\nb B-X\ncab I-X\nd O\n", encoding="utf-8")
    scores = []
    for path, engine in ((folder, "heedful"), (folder, "onnxruntime"), (exported, "auto")):
        done = CliRunner().invoke(cli, ["evaluate", str(path), str(data), "--engine", engine, "--json"])
        assert done.exit_code == 0, done.output
        scores.append(json.loads(done.stdout)["scores"])
    assert scores[0] == scores[1] == scores[2]
    said = CliRunner().invoke(cli, ["predict", str(exported), TEXTS[0]])
    assert_alike([json.loads(said.stdout)], predictor(folder).predict(TEXTS[:1]))
    ours, theirs = (load(path).embed(TEXTS[:4]) for path in (folder, exported))  # type: ignore[union-attr]
    np.testing.assert_allclose(theirs, ours, atol=1e-5)


def test_in_int8_the_answers_hardly_change(folder: Path, tmp_path: Path) -> None:
    command = ["export", str(folder), "--to", "onnx", "--precision", "int8", "-o", str(tmp_path / "small")]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0 and "int8 for ONNX Runtime; beside ours" in done.stderr, done.output
    ours, theirs = (predictor(path).predict(TEXTS) for path in (folder, tmp_path / "small"))
    labels = [[label for said in answers for label in said["labels"]] for answers in (ours, theirs)]
    assert np.mean([one == other for one, other in zip(*labels, strict=True)]) > 0.9


def test_plain_onnxruntime_is_told_of_the_words(folder: Path, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text.split() for text in TEXTS if 0 < len(text) < 20]
    said = as_its_readme_says(exported, texts, monkeypatch)
    words = said["inputs"]["word_mask"]
    assert words[0].tolist() == [0, 1, 0, 0, 1, 1, 0, 0, 0]  # [CLS] a ##b ##c d e ##a ##b [SEP]
    ours = predictor(folder)
    items = ours.task.encode([ours.task.example(text) for text in texts], ours.tokenizer)
    for logits, places, (wanted,) in zip(said["logits"], words, outputs_of(ours.model, items), strict=True):
        np.testing.assert_allclose(logits[places == 1], wanted, atol=1e-5)


@torch.inference_mode()
def test_the_words_of_a_block_are_read_both_ways() -> None:
    torch.manual_seed(0)
    layer, states = torch.nn.LSTM(4, 3, 2, bidirectional=True), torch.randn(3, 5, 4)
    words = torch.tensor([[0, 1, 0, 1, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0]])
    said, real = over_words(layer, states, words), words.bool()
    torch.testing.assert_close(said[real], over_runs(layer, states[real], [2, 5, 1]))
    torch.testing.assert_close(said[0, [0, 2, 4]], said[0, [1, 1, 3]])  # a piece has what its word has
    assert over_words(layer, states, torch.zeros_like(words)).isfinite().all()


def test_a_file_that_asks_for_something_else_is_refused(exported: Path, tmp_path: Path) -> None:
    model = onnx.load(str(exported / "model.onnx"))
    model.graph.input.append(onnx.helper.make_tensor_value_info("position_ids", onnx.TensorProto.INT64, [1, 1]))
    onnx.save(model, str(tmp_path / "model.onnx"))
    with pytest.raises(HeedfulError, match=r"asks for position_ids(.|\n)*heedful export"):
        Session(tmp_path / "model.onnx")
