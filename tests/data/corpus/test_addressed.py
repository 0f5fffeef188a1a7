"""A corpus at an address: the bytes of one on a path, built on after a kill, fetched to be used."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from heedful.addresses import Address
from heedful.data.corpus.build import BuildProgress, ReadingSettings, build_corpus
from heedful.data.corpus.corpus import Corpus
from heedful.errors import HeedfulError
from heedful.runs.preparation.settings import CorpusSettings
from heedful.text.tokenizer import Tokenizer

READING = ReadingSettings(held_out_share=0.1, unit_bytes=40_000)


@pytest.fixture(scope="module")
def built(text_file: Path, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("built") / "corpus"
    build_corpus([str(text_file)], folder, tokenizer, reading=READING)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/heedful/corpora"


def content(folder: Address) -> dict[str, bytes]:
    files = [*folder.iterdir(), *(folder / "tokenizer").iterdir()]
    return {one.removeprefix(f"{folder}/"): one.open().read() for one in files if one.is_file()}


class Stop(Exception):
    """The interruption."""


def test_in_memory_and_from_memory(built: dict[str, bytes], text_file: Path, tokenizer: Tokenizer, cache: Path) -> None:
    """Interrupted with a shard that is damaged and half of another left behind, then finished, fetched and checked."""
    store = Address(f"memory://{uuid.uuid4().hex}")
    (store / "text.txt").send(text_file)

    def stop(progress: BuildProgress) -> None:
        if progress.shards == 3:
            raise Stop

    with pytest.raises(Stop):
        build_corpus([store / "*.txt"], store / "c", tokenizer, reading=READING, on_progress=stop)
    with pytest.raises(HeedfulError, match="not finished"):
        Corpus.open(store / "c")
    for name in ("train-00000.safetensors", ".train-00009.safetensors.12ab.tmp"):
        with (store / "c" / name).new_file() as file:
            file.write(b"half")
    kept: list[int] = []
    corpus = build_corpus(
        [store / "text.txt"], store / "c", tokenizer, reading=READING, on_progress=lambda p: kept.append(p.kept)
    )
    assert content(store / "c") == built and kept[-1] == 2
    assert not cache.exists()  # nothing has asked for its text
    assert corpus.train.tokens and corpus.tokenizer.vocabulary == tokenizer.vocabulary
    with pytest.raises(HeedfulError, match="finished corpus of another text"):
        build_corpus([str(text_file)] * 2, store / "c", tokenizer, reading=READING)

    shard = next(cache.rglob("train-00001.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    Corpus.open(str(store / "c"), verify=True)
    assert shard.read_bytes() == built[shard.name]
    shard.unlink()
    with (store / "c" / shard.name).new_file() as file:
        file.write(built[shard.name][:-1] + b"?")
    with pytest.raises(HeedfulError, match="checksum is wrong") as raised:
        _ = Corpus.open(store / "c").train
    assert raised.value.where == store / "c" / shard.name and not shard.exists()


def test_refusals(text_file: Path, tokenizer: Tokenizer) -> None:
    with pytest.raises(HeedfulError, match="the others do not see"):
        build_corpus([str(text_file)], "memory://c", tokenizer, workers=2)
    with pytest.raises(HeedfulError, match="no such file"):
        build_corpus(["memory://nowhere/*.txt"], "memory://c", tokenizer)
    with pytest.raises(HeedfulError, match="no corpus here"):
        Corpus.open("memory://nowhere")
    with pytest.raises(HeedfulError, match="`static` examples"):
        CorpusSettings("a.txt", "memory://c", tokenizer="t", static=True)
