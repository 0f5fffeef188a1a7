"""The losses of sentence vectors against those of sentence-transformers on the same weights and texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.sentence_transformers import SentenceSettings
from heedful.checkpoints.task_folder import load_for_task
from heedful.data.labelled.dataset import SentencePair
from heedful.tasks.embed import Embed
from heedful.tasks.finetuning import TaskObjective
from heedful.tasks.items import micro_batch_of
from heedful.text.tokenizer import Tokenizer

ROWS = [("the cat", "cat cat", "un"), ("a dog sees", "the dog", "love the"), ("中国 苹果", "苹果", "q r s t")]


@pytest.fixture
def folder(tiny_folder: Path, tiny_tokenizer: Tokenizer, tmp_path: Path) -> Path:
    model = load_encoder(read_folder(tiny_folder))
    save_model(model, tmp_path / "m", tiny_tokenizer, sentence=SentenceSettings("mean"), max_length=64)
    return tmp_path / "m"


def ours(folder: Path, task: Embed, rows: Sequence[SentencePair]) -> float:
    read = read_folder(folder)
    model = load_for_task(read, task.model, seed=0)
    micro_batch = micro_batch_of(task.encode(rows, read.require_tokenizer()), "loss")
    return float(TaskObjective(task)(model, micro_batch)["loss"].detach()) / micro_batch.weight


def theirs(folder: Path, loss: str, columns: Sequence[Sequence[str]], labels: Any = None) -> float:
    library = pytest.importorskip("sentence_transformers", reason="needs the extra bench")
    losses = pytest.importorskip("sentence_transformers.losses", reason="needs the extra bench")
    model = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True).eval()
    return float(getattr(losses, loss)(model)([model.tokenize(list(texts)) for texts in columns], labels).detach())


@pytest.mark.parametrize("texts", [2, 3])
def test_pairs_and_triplets(folder: Path, texts: int) -> None:
    rows = [SentencePair(row[0], row[1], row[2:texts]) for row in ROWS]
    found = ours(folder, Embed.fit(rows), rows)
    columns = list(zip(*(row[:texts] for row in ROWS), strict=True))
    assert found == pytest.approx(theirs(folder, "MultipleNegativesRankingLoss", columns), rel=1e-4)


def test_scored_pairs(folder: Path) -> None:
    scores = [0.0, 2.5, 5.0]
    rows = [SentencePair(row[0], row[1], (), score) for row, score in zip(ROWS, scores, strict=True)]
    columns = list(zip(*(row[:2] for row in ROWS), strict=True))
    expected = theirs(folder, "CosineSimilarityLoss", columns, torch.tensor(scores) / 5)
    assert ours(folder, Embed.fit(rows), rows) == pytest.approx(expected, rel=1e-4)
