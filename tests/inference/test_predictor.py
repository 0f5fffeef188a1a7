"""Predictors: which windows, columns and pairs a folder is for, what every row of a file gets, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import load_for_task, save_for_task
from heedful.config import to_mapping
from heedful.data.labelled.dataset import Columns
from heedful.errors import HeedfulError
from heedful.inference.predictor import Predictor
from heedful.tasks.classify import Classify
from heedful.tasks.regress import Regress
from heedful.tasks.tag import Tag
from heedful.tasks.task import Task

pytestmark = pytest.mark.processor

Saved = Callable[..., Path]
LABELS = ("bad", "good")


@pytest.fixture
def saved(tiny_folder: Path, tmp_path: Path) -> Saved:
    """The folder of a random model for a task, with more in its task.json."""

    def save(task: Task[Any], **more: Any) -> Path:
        folder, path = read_folder(tiny_folder), tmp_path / "model"
        model, labels = load_for_task(folder, task.model, seed=0), getattr(task, "labels", ())
        torch.nn.init.normal_(model.get_parameter("classifier.weight"), generator=torch.Generator().manual_seed(1))
        settings = {"task": task.name, **to_mapping(task), **more}
        save_for_task(model, path, folder.tokenizer, task=settings, architecture=task.architecture, labels=labels)
        return path

    return save


def loaded(path: Path) -> Predictor:
    return Predictor(read_folder(path))


def rows(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_folder_of_hugging_face_reads_as_much_as_it_can(saved: Saved) -> None:
    path = saved(Classify(labels=LABELS))
    (path / "task.json").unlink()
    one = loaded(path)
    assert one.task == Classify(max_length=512, labels=LABELS)
    long = "cat " * 300
    assert one.predict([long + "dog"]) != one.predict([long + "love"])  # beyond our own 128 tokens
    limits = {"tokenizer_class": "BertTokenizer", "model_max_length": 64}
    (path / "tokenizer_config.json").write_text(json.dumps(limits), encoding="utf-8")
    assert loaded(path).task.max_length == 64


def test_windows_longer_than_the_model_are_refused(saved: Saved) -> None:
    with pytest.raises(HeedfulError, match=r"max_length 513(.|\n)*512 positions(.|\n)*task\.json"):
        loaded(saved(Tag(max_length=513, labels=("O", "B-X"))))


@pytest.mark.parametrize("task", [Classify(labels=LABELS), Regress()])
@pytest.mark.parametrize("first", [2, 10, 20])
def test_a_pair_that_fits_is_read_as_without_a_stride(saved: Saved, task: Task[Any], first: int) -> None:
    pair = " ".join("abcdefghijklmnopqrst"[:first]), " ".join("abcdefghijklmnopqrst"[first - 20 :][: 22 - first])
    tokens = 3 + sum(len(side.split()) for side in pair)
    one = loaded(saved(task))
    plain = one.predict([pair])
    one.task = replace(task, max_length=tokens, stride=1)
    assert one.predict([pair]) == plain
    one.task = replace(task, max_length=tokens - 1, stride=1)
    assert one.predict([pair]) != plain


def test_both_sides_of_a_pair_that_does_not_fit_are_read(saved: Saved) -> None:
    one = loaded(saved(Classify(max_length=12, stride=2, labels=LABELS)))
    items = one.task.encode([one.task.example((" ".join("abcdefghij"), " ".join("klmnopqrstuv")))], one.tokenizer)
    seen = [{one.tokenizer.vocabulary[i] for i in item.windows[0].ids} for item in items]
    assert all(set("abcdef") < window for window in seen) and set("klmnopqrstuv") < set().union(*seen)


def test_columns_are_those_of_training_unless_others_are_named(saved: Saved, tmp_path: Path) -> None:
    one = loaded(saved(Classify(labels=LABELS), columns={"text": "said", "label": "mood"}))
    table = rows(tmp_path / "a.tsv", "label\ttext\tsaid\tmood", "x\tthe dog\tthe cat\tgood")
    (row,) = one.read(table).examples
    assert (row.text, row.pair, row.label) == ("the cat", None, "good")
    (row,) = one.read(table, Columns(text="text"), labelled=False).examples
    assert (row.text, row.label) == ("the dog", None)
    with pytest.raises(HeedfulError, match="'x' does not occur"):
        one.read(table, Columns(label="label"))


def test_plain_lines_need_no_columns(saved: Saved, tmp_path: Path) -> None:
    one = loaded(saved(Classify(labels=LABELS), columns={"text": "said"}))
    for name, lines in (("a.txt", ["the cat", "a dog"]), ("b.txt", ["said", "the cat", "a dog"])):
        data = one.read(rows(tmp_path / name, *lines), labelled=False)
        assert [row.text for row in data.examples] == ["the cat", "a dog"]
    table = rows(tmp_path / "c.txt", "id\tsaid", "1\tthe cat")
    assert [row.text for row in one.read(table, labelled=False).examples] == ["the cat"]


@pytest.mark.parametrize("columns", ["said", {"txt": "said"}, {"text": 3}])
def test_columns_of_another_kind_are_refused(saved: Saved, columns: Any) -> None:
    with pytest.raises(HeedfulError, match=r"task\.json"):
        loaded(saved(Classify(labels=LABELS), columns=columns))


@pytest.mark.parametrize(
    ("pairs", "good", "wrong", "said"),
    [(True, ("a", "b"), "a", "trained on pairs"), (False, "a", ("a", "b"), "trained on single texts")],
)
def test_texts_and_pairs_are_not_taken_for_each_other(
    saved: Saved, pairs: bool, good: Any, wrong: Any, said: str
) -> None:
    one = loaded(saved(Classify(labels=LABELS), pairs=pairs))
    assert len(one.predict([good])) == 1
    with pytest.raises(HeedfulError, match=said):
        one.predict([wrong])


def test_every_row_without_labels_gets_an_answer_or_an_error(saved: Saved, tmp_path: Path) -> None:
    one = loaded(saved(Classify(labels=LABELS)))
    lines = ["label\ttext", *["good\tthe cat"] * 50, "good\tthe\tdog"]
    path = rows(tmp_path / "a.tsv", *lines)
    assert len(one.read(path).examples) == 50  # of labelled data a row may be missing
    with pytest.raises(HeedfulError, match=r"1 rows have another number of columns(.|\n)*a\.tsv:52"):
        one.read(path, labelled=False)


def test_an_evaluation_tells_how_far_it_is(saved: Saved, tmp_path: Path) -> None:
    one, told = loaded(saved(Classify(labels=LABELS))), list[int]()
    data = one.read(rows(tmp_path / "a.tsv", "label\ttext", *["good\tthe cat"] * 1030))
    found = one.evaluate(data, told.append)
    assert told == [1024, 1030] and len(found.predictions) == 1030
    assert found.predictions[-1]["probability"] == pytest.approx(one.predict(["the cat"])[0]["probability"], abs=1e-5)
    assert found.scores == one.task.score(data.examples, found.predictions)


def test_a_loaded_encoder_takes_the_place_of_the_read_one(saved: Saved) -> None:
    path = saved(Classify(labels=LABELS))
    embedder = heedful.load(path, "cpu")
    assert embedder.predictor.model.encoder is embedder.encoder
    assert embedder.predict(["the cat"]) == loaded(path).predict(["the cat"])
