"""Vectors streamed to files: readable elsewhere, equal to Python's, and continued after an interruption."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from heedful.errors import HeedfulError
from heedful.inference import vector_file as module
from heedful.inference.embed_file import EmbedProgress, embed_file
from heedful.inference.embedder import Embedder
from heedful.inference.features import Features
from heedful.inference.vector_file import VectorFile
from heedful.inference.vector_layout import VectorLayout

Sentences = Callable[[int], list[str]]
KINDS = [
    ("npy", "sentence"),
    ("npy", "word"),
    ("safetensors", "sentence"),
    ("safetensors", "token"),
    ("jsonl", "token"),
]


@pytest.fixture(autouse=True)
def commit_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMIT_EVERY", -1.0)


def write(model: Embedder, texts: Iterable[str], path: Path, kind: str, unit: str, **options: object) -> EmbedProgress:
    return embed_file(model, texts, path, Features(unit=unit), kind=kind, **options)  # type: ignore[arg-type]


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_npy_of_sentences(tiny: Embedder, sentences: Sentences, tmp_path: Path) -> None:
    progress = write(tiny, sentences(100), tmp_path / "x.npy", "npy", "sentence")
    found = np.load(tmp_path / "x.npy", allow_pickle=False)
    np.testing.assert_array_equal(found, tiny.embed(sentences(100)))
    assert found.dtype == np.float32 and (progress.texts, progress.resumed, progress.truncated) == (100, 0, 0)
    assert list(content(tmp_path)) == ["x.npy", "x.npy.origin.json"]


@pytest.mark.parametrize("unit", ["word", "token"])
def test_npy_of_words_has_its_lengths_beside_it(
    tiny: Embedder, sentences: Sentences, tmp_path: Path, unit: str
) -> None:
    write(tiny, sentences(100), tmp_path / "x.npy", "npy", unit)
    expected = tiny.embed(sentences(100), unit=unit)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.concatenate(expected))
    np.testing.assert_array_equal(np.load(tmp_path / "x.lengths.npy"), [len(v) for v in expected])
    assert len(content(tmp_path)) == 3


def test_safetensors(tiny: Embedder, sentences: Sentences, tmp_path: Path) -> None:
    write(tiny, sentences(70), tmp_path / "s.safetensors", "safetensors", "sentence")
    write(tiny, sentences(70), tmp_path / "w.safetensors", "safetensors", "word")
    whole = load_file(tmp_path / "s.safetensors")
    assert list(whole) == ["vectors"]
    np.testing.assert_array_equal(whole["vectors"], tiny.embed(sentences(70)))
    words, expected = load_file(tmp_path / "w.safetensors"), tiny.embed(sentences(70), unit="word")
    np.testing.assert_array_equal(words["vectors"], np.concatenate(expected))
    np.testing.assert_array_equal(words["lengths"], [len(v) for v in expected])


def test_jsonl_has_the_layout_of_extract_features(tiny: Embedder, tmp_path: Path) -> None:
    texts = ["the cats", "", "中国"]
    embed_file(tiny, texts, tmp_path / "x.jsonl", Features(layers=(-1, 1), unit="token"), kind="jsonl")
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["linex_index"] for row in rows] == [0, 1, 2]
    tokens = [[feature["token"] for feature in row["features"]] for row in rows]
    assert tokens == [["[CLS]", "the", "cat", "##s", "[SEP]"], ["[CLS]", "[SEP]"], ["[CLS]", "中", "国", "[SEP]"]]
    for place, layer in enumerate((-1, 1)):
        expected = tiny.embed(texts, layers=[layer], unit="token")
        for row, vectors in zip(rows, expected, strict=True):
            layers = [feature["layers"][place] for feature in row["features"]]
            assert {one["index"] for one in layers} == {layer}
            np.testing.assert_allclose([one["values"] for one in layers], vectors, atol=1e-6)


class Stop(Exception):
    """The interruption."""


def interrupted(texts: list[str], after: int) -> Iterator[str]:
    yield from texts[:after]
    raise Stop


@pytest.mark.parametrize(("kind", "unit"), KINDS)
def test_an_interrupted_output_is_finished_to_the_same_bytes(
    tiny: Embedder, sentences: Sentences, tmp_path: Path, kind: str, unit: str
) -> None:
    size = 1024 if unit == "sentence" else 64
    texts = sentences(3 * size + 2)  # two texts at the end, for which few-texts shortcuts would round differently
    (tmp_path / "a").mkdir()
    write(tiny, texts, tmp_path / "a" / "x", kind, unit)
    for stop in (2 * size + 3, 3 * size + 1):
        with pytest.raises(Stop):
            write(tiny, interrupted(texts, stop), tmp_path / "b" / "x", kind, unit)
        assert not (tmp_path / "b" / "x").exists()
    progress = write(tiny, texts, tmp_path / "b" / "x", kind, unit)
    assert progress.resumed == 2 * size and progress.texts == len(texts)
    assert content(tmp_path / "a") == content(tmp_path / "b")


@pytest.fixture
def unfinished(tiny: Embedder, sentences: Sentences, tmp_path: Path) -> Path:
    with pytest.raises(Stop):
        write(tiny, interrupted(sentences(200), 150), tmp_path / "x.npy", "npy", "word")
    return tmp_path / "x.npy"


def test_another_input_is_refused_and_nothing_lost(tiny: Embedder, sentences: Sentences, unfinished: Path) -> None:
    before = content(unfinished.parent)
    for other in (["new", *sentences(200)[1:]], sentences(200)[:10]):
        with pytest.raises(HeedfulError, match="not the one of the unfinished") as caught:
            write(tiny, other, unfinished, "npy", "word")
        assert "`restart`" in str(caught.value)
    assert content(unfinished.parent) == before
    assert write(tiny, sentences(200), unfinished, "npy", "word").resumed == 64


@pytest.mark.parametrize("options", [{"unit": "token"}, {"kind": "safetensors"}, {"max_length": 20}])
def test_other_settings_are_refused_and_nothing_lost(
    tiny: Embedder, sentences: Sentences, unfinished: Path, options: dict[str, object]
) -> None:
    before = content(unfinished.parent)
    with pytest.raises(HeedfulError, match="other settings") as caught:
        write(tiny, sentences(200), unfinished, **{"kind": "npy", "unit": "word", **options})  # type: ignore[arg-type]
    assert "`restart`" in str(caught.value)
    assert content(unfinished.parent) == before


def test_restart_throws_the_unfinished_away(tiny: Embedder, unfinished: Path) -> None:
    assert write(tiny, ["cat"], unfinished, "npy", "sentence", restart=True).resumed == 0
    np.testing.assert_allclose(np.load(unfinished), tiny.embed(["cat"]), atol=2e-5)
    assert list(content(unfinished.parent)) == ["x.npy", "x.npy.origin.json"]


@pytest.mark.parametrize("name", ["x.npy.partial", "x.npy.partial.lengths", "x.npy.partial.json"])
@pytest.mark.parametrize("damage", [lambda file: file.unlink(), lambda file: file.write_bytes(file.read_bytes()[:100])])
def test_a_damaged_partial_is_done_again_rather_than_trusted(
    tiny: Embedder, sentences: Sentences, unfinished: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(unfinished.with_name(name))
    assert write(tiny, sentences(200), unfinished, "npy", "word").resumed == 0
    expected = np.concatenate(list(tiny.embed(sentences(200), unit="word")))
    np.testing.assert_allclose(np.load(unfinished), expected, atol=2e-5)


def test_an_old_output_stays_until_the_new_one_is_whole(tiny: Embedder, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(b"old")
    with pytest.raises(Stop):
        write(tiny, interrupted(["cat"] * 70, 69), tmp_path / "x.npy", "npy", "token", overwrite=True)
    assert (tmp_path / "x.npy").read_bytes() == b"old"


def test_truncated_texts_are_counted_across_attempts(tiny: Embedder, tmp_path: Path) -> None:
    texts = ["a b c d"] * 150
    with pytest.raises(Stop):
        write(tiny, interrupted(texts, 140), tmp_path / "x", "npy", "token", max_length=4)
    progress = write(tiny, texts, tmp_path / "x", "npy", "token", max_length=4)
    assert (progress.resumed, progress.truncated) == (64, 150)


def test_truncation_may_be_an_error_that_names_the_text(tiny: Embedder, tmp_path: Path) -> None:
    texts = ["cat"] * 70 + ["the cat sees dog"]
    with pytest.raises(HeedfulError, match=r"text 71 is longer than 5 tokens") as caught:
        write(tiny, texts, tmp_path / "x", "npy", "token", max_length=5, truncate="error")
    assert "the cat sees dog" in str(caught.value.where)
    assert not (tmp_path / "x").exists()


def test_no_texts_are_an_error_that_leaves_nothing_behind(tiny: Embedder, tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match="no texts"):
        write(tiny, [], tmp_path / "x", "npy", "sentence")
    assert not content(tmp_path)


@pytest.mark.parametrize(
    ("kind", "wanted", "truncate", "said"),
    [
        ("csv", Features(), "warn", "'csv'"),
        ("npy", Features(), "maybe", "'maybe'"),
        ("jsonl", Features(), "warn", "jsonl holds every token"),
        ("jsonl", Features(unit="token", combine="sum"), "warn", "jsonl holds every token"),
    ],
)
def test_impossible_requests_are_refused_before_anything_is_written(
    tiny: Embedder, tmp_path: Path, kind: str, wanted: Features, truncate: str, said: str
) -> None:
    with pytest.raises(HeedfulError, match=said):
        embed_file(tiny, ["cat"], tmp_path / "x", wanted, kind=kind, truncate=truncate)
    assert not content(tmp_path)


def test_a_place_that_cannot_be_written_is_told(tiny: Embedder, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "x.npy", tmp_path / "file" / "deeper" / "x.npy"):
        with pytest.raises(HeedfulError, match="cannot write"):
            write(tiny, ["cat"], place, "npy", "sentence")


def test_an_error_while_closing_is_told_plainly(
    tiny: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(VectorFile, "append", lambda *_: None)
    target = VectorFile(tmp_path / "x", VectorLayout("npy", 32, ragged=False), {})
    with pytest.raises(HeedfulError, match="No space"), target:
        target._files.callback(full)
