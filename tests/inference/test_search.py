"""Search by brute force, an index that grows and stays whole, and models and folders that do not belong to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

import heedful
from heedful.errors import HeedfulError
from heedful.file_lock import try_lock
from heedful.inference import search
from heedful.inference.embedder import Embedder
from heedful.inference.search import Added, Index
from heedful.serving.catalogue import open_lines

pytestmark = pytest.mark.processor

LINES = ["the cat", "a dog sees", "love love", "中国 苹果", "unaffordable", "the dog", "cat cat cat"]


@pytest.fixture
def index(tiny: Embedder, tmp_path: Path) -> Index:
    made = Index.create(tmp_path / "index", tiny)
    made.add(LINES[:4], "a.txt")
    made.add(LINES[4:], "b.txt")
    return made


def test_the_nearest_lines_are_those_with_the_greatest_cosine(index: Index, tiny: Embedder) -> None:
    queries = ["dog", "苹果", "the cat"]
    vectors, asked = (np.asarray(tiny.embed(texts, normalize=True)) for texts in (LINES, queries))
    for query, hits in zip(asked, index.search(queries, top=3), strict=True):
        cosines = vectors @ query
        order = np.argsort(-cosines)[:3]
        assert [hit.text for hit in hits] == [LINES[i] for i in order]
        assert [hit.cosine for hit in hits] == pytest.approx(cosines[order].tolist(), abs=1e-5)
    ((hit, *_),) = index.search(["the cat"], top=1)
    assert (hit.text, hit.source, hit.line) == ("the cat", "a.txt", 1) and hit.cosine == pytest.approx(1, abs=1e-5)
    assert len(index.search(["dog"], top=100)[0]) == len(LINES)


def test_an_index_is_opened_again_and_grows(index: Index, tiny_folder: Path) -> None:
    again = Index.open(index.folder)
    assert again.embedder.folder.weights == tiny_folder and len(again) == 7
    assert again.add(["the cat", " ", "new new", "new new"]) == Added(new=1, known=2, blank=1)
    assert len(again) == 8 and len(Index.open(index.folder)) == 8
    assert index.add(["newest"]).new == 1 and len(index) == 9  # what was added meanwhile is not lost
    assert [hit.text for hit in Index.open(index.folder).search(["new new"], top=1)[0]] == ["new new"]


@pytest.mark.parametrize("free", [64, 300])
def test_a_full_disk_loses_nothing_that_was_there(
    index: Index, free: int, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    more = [f"the cat {number}" for number in range(30)]
    with full_disk(free), pytest.raises(HeedfulError, match="cannot write") as caught:
        index.add(more, "c.txt")
    assert caught.value.remedy is not None and "space" in caught.value.remedy
    again = Index.open(index.folder)
    assert len(again) == 7 and [hit.text for hit in again.search(["the cat"], top=1)[0]] == ["the cat"]
    assert again.add(more, "c.txt").new == 30 and len(Index.open(index.folder)) == 37


def test_large_inputs_come_in_parts_that_stay_when_adding_breaks_off(
    tiny: Embedder, tmp_path: Path, sentences: Callable[[int], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "PART", 10)
    texts = list(dict.fromkeys(text for text in sentences(60) if text.strip()))[:35]

    def broken() -> Iterator[str]:
        yield from texts[:25]
        raise KeyboardInterrupt

    index = Index.create(tmp_path / "index", tiny)
    with pytest.raises(KeyboardInterrupt):
        index.add(broken())
    assert len(Index.open(index.folder, tiny)) == 20
    assert index.add(texts) == Added(new=15, known=20) and len(index.record.parts) == 4
    whole = Index.create(tmp_path / "whole", tiny)
    monkeypatch.undo()
    whole.add(texts)
    one, other = (made.search(["cat", "苹果"], top=35) for made in (index, whole))
    for hits, others in zip(one, other, strict=True):
        assert [hit.cosine for hit in hits] == pytest.approx([hit.cosine for hit in others], abs=1e-5)
        assert {hit.text for hit in hits} == {hit.text for hit in others} == set(texts)


def test_another_model_is_refused(index: Index, tiny_folder: Path, tmp_path: Path) -> None:
    import shutil

    from safetensors.numpy import load_file, save_file

    shutil.copytree(tiny_folder, tmp_path / "moved")
    assert Index.open(index.folder, heedful.load(tmp_path / "moved", "cpu")).search(["cat"])  # the same, elsewhere
    weights = load_file(tmp_path / "moved" / "model.safetensors")
    name = next(name for name in weights if "word_embeddings" in name)
    weights[name] = -weights[name]
    save_file(weights, tmp_path / "moved" / "model.safetensors", {"format": "pt"})
    with pytest.raises(HeedfulError, match="not the model that this index was made with"):
        Index.open(index.folder, heedful.load(tmp_path / "moved", "cpu"))
    record = json.loads((index.folder / "index.json").read_text(encoding="utf-8"))
    (index.folder / "index.json").write_text(json.dumps(record | {"model": str(tmp_path / "gone")}), encoding="utf-8")
    with pytest.raises(HeedfulError, match="no longer at"):
        Index.open(index.folder)


def test_what_cannot_be_searched_is_refused(index: Index, tiny: Embedder, tmp_path: Path) -> None:
    for wrong, said in ((["  "], "blank"), ("cat", "single query")):
        with pytest.raises(HeedfulError, match=said):
            index.search(wrong)  # type: ignore[arg-type]
    with pytest.raises(HeedfulError, match="a single line"):
        index.add("the cat")
    with pytest.raises(HeedfulError, match="0 nearest"):
        index.search(["cat"], top=0)
    with pytest.raises(HeedfulError, match="no lines yet"):
        Index.create(tmp_path / "empty", tiny).search(["cat"])
    with pytest.raises(HeedfulError, match="there is no index"):
        Index.open(tmp_path)
    with pytest.raises(HeedfulError, match="there already"):
        Index.create(index.folder, tiny)


@pytest.mark.parametrize("damage", ["00001.npy", "00001.jsonl", "index.json"])
def test_a_damaged_index_is_told(index: Index, damage: str) -> None:
    path = index.folder / damage
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(HeedfulError) as caught:
        Index.open(index.folder).search(["the cat"], top=7)
    assert damage in str(caught.value.where)


def test_two_do_not_add_at_the_same_time(index: Index) -> None:
    with (index.folder / "index.lock").open("a") as file:
        assert try_lock(file)
        with pytest.raises(HeedfulError, match="another process"):
            index.add(["more"])


def test_the_graph_finds_what_the_exact_search_finds_and_follows_the_lines(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):  # made, and read again
        for near, exact in zip(*(index.search(["dog", "苹果"], 3, way) for way in (True, False)), strict=True):
            assert [hit.cosine for hit in near] == pytest.approx([hit.cosine for hit in exact], abs=1e-5)
    index.add(["q r s t u v"])
    assert {hit.text for hit in index.search(["dog"], 100, approximate=True)[0]} == {*LINES, "q r s t u v"}
    (index.folder / "graph.faiss").write_bytes(b"no graph")
    assert index.search(["the cat"], 1, approximate=True)[0][0].cosine == pytest.approx(1, abs=1e-5)
    monkeypatch.setattr("heedful.inference.search_graph.find_spec", lambda name: None)
    with pytest.raises(HeedfulError, match=r"heedful\[faiss\]"):
        index.search(["dog"], approximate=True)


def test_a_server_takes_an_index_as_it_takes_a_file_of_lines(index: Index, tiny: Embedder, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    ours, theirs = (
        open_lines(tiny, str(path)).search(["dog", "苹果"], 3) for path in (index.folder, tmp_path / "lines.txt")
    )
    for hits, others in zip(ours, theirs, strict=True):
        assert [hit.text for hit in hits] == [hit.text for hit in others]
        assert {hit.source for hit in hits} <= {"a.txt", "b.txt"} and {hit.source for hit in others} == {""}
