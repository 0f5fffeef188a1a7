"""The files have the layouts of the real data sets and hold what the Python side gives."""

import json
from pathlib import Path

import pytest

from heedful.toy.tasks import rows
from heedful.toy.writer import SIZES, Size, tsv, write

SIZE = Size(documents=6, heldout=3, train=24, dev=12)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    write(folder, SIZE, seed=5)
    return folder


@pytest.mark.parametrize(
    ("task", "header"),
    [
        ("sentiment.en", "label\tsentence"),
        ("pairs.zh", "label\tsentence1\tsentence2"),
        ("similarity.en", "score\tsentence1\tsentence2\tgenre\tsource"),
        ("parallel.en-zh", "en\tzh"),
    ],
)
def test_tables(world: Path, task: str, header: str) -> None:
    name, language = task.split(".")
    for split, count in (("train", SIZE.train), ("dev", SIZE.dev)):
        first, *lines = (world / task / f"{split}.tsv").read_text(encoding="utf-8").splitlines()
        expected = rows(name, language, split, count, seed=5)
        assert first == header
        assert [line.split("\t")[-1] for line in lines] == [str(row[-1]) for row in expected]
        assert {line.count("\t") for line in lines} == {header.count("\t")}


def test_scores_have_three_decimals(world: Path) -> None:
    lines = (world / "similarity.zh" / "train.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert {line.split("\t")[0] for line in lines} == {"0.000", "1.250", "2.500", "5.000"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_conll(world: Path, language: str) -> None:
    text = (world / f"tags.{language}" / "dev.conll").read_text(encoding="utf-8")
    blocks = [[tuple(line.split("\t")) for line in block.splitlines()] for block in text.split("\n\n")]
    assert blocks == [
        list(zip(row.tokens, row.tags, strict=True)) for row in rows("tags", language, "dev", SIZE.dev, seed=5)
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_squad(world: Path, language: str) -> None:
    content = json.loads((world / f"questions.{language}" / "train.json").read_text(encoding="utf-8"))
    assert content["version"] == "1.1"
    found = set()
    for paragraph in content["data"][0]["paragraphs"]:
        for asked in paragraph["qas"]:
            (answer,) = asked["answers"]
            assert paragraph["context"][answer["answer_start"] :].startswith(answer["text"])
            found.add((paragraph["context"], asked["question"], answer["text"]))
    expected = rows("questions", language, "train", SIZE.train, seed=5)
    assert found == {(row.context, row.question, row.span.text) for row in expected}


def test_choices(world: Path) -> None:
    lines = (world / "choices.zh" / "dev.jsonl").read_text(encoding="utf-8").splitlines()
    objects = [json.loads(line) for line in lines]
    assert [list(each) for each in objects] == [["id", "context", "question", "choices", "label"]] * SIZE.dev
    assert len({each["id"] for each in objects}) == SIZE.dev
    assert all(len(each["choices"]) == 4 and 0 <= each["label"] < 4 for each in objects)


def test_documents(world: Path) -> None:
    for name, count in (("documents", SIZE.documents), ("heldout", SIZE.heldout)):
        for language in ("en", "zh"):
            text = (world / f"{name}.{language}.txt").read_text(encoding="utf-8")
            assert len(text.strip().split("\n\n")) == count


def test_no_cell_needs_quoting() -> None:
    for name in ("sentiment", "pairs", "similarity"):
        assert '"' not in tsv(rows(name, "zh", "train", 100))


def test_sizes_grow() -> None:
    assert SIZES["small"] < SIZES["normal"] < SIZES["large"]
