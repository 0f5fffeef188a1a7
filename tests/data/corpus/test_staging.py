"""Text that the workers read themselves: the corpus that comes out is the one of a single process."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heedful.addresses import Address, place
from heedful.data.corpus import pieces as module
from heedful.data.corpus.build import BuildProgress, ReadingSettings, build_corpus
from heedful.data.corpus.pieces import pieces_of
from heedful.data.corpus.tokens import TokenSettings
from heedful.data.processes import mapped
from heedful.errors import HeedfulError, TextWarning
from heedful.text.encodings import reading_as
from heedful.text.stretch import Stretch
from heedful.text.tokenizer import Tokenizer

READING = ReadingSettings(held_out_share=0.1, unit_bytes=20_000)


class Processes:
    """An engine of processes on this machine."""

    def __init__(self, count: int) -> None:
        self.count = count

    def mapped(
        self, make_tool: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...], tasks: Iterable[Any]
    ) -> Iterator[Any]:
        return mapped(make_tool, arguments, tasks, self.count)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STRETCH_BYTES", 15_000)


@pytest.fixture(scope="module")
def files(text_file: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The same documents more than once, in every format: large and small files, some of which can be cut."""
    folder = tmp_path_factory.mktemp("files")
    documents = text_file.read_text(encoding="utf-8").split("\n\n")
    rows = [json.dumps({"text": text}, ensure_ascii=False) for text in documents[:150]]
    (folder / "a.jsonl").write_text("\n".join(rows), encoding="utf-8")
    for number in range(5):
        (folder / f"b{number}.txt").write_text("\n\n".join(documents[150 + number : 153 + number]), encoding="utf-8")
    (folder / "c.txt").write_text("\n\n\n".join(documents[140:400]), encoding="utf-8")
    with gzip.open(folder / "d.txt.gz", "wt", encoding="utf-8") as packed:
        packed.write("\n\n".join(documents[390:]))
    (folder / "e.tsv").write_text("text\n" + "\n".join(documents[0].split("\n")), encoding="utf-8")
    return sorted(map(str, folder.iterdir()))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("deduplicate", [False, True])
def test_workers_that_read_make_the_same_corpus(
    files: list[str], tokenizer: Tokenizer, tmp_path: Path, deduplicate: bool, scheme: str
) -> None:
    reading = ReadingSettings(None, deduplicate, 0.1, (files[1],), unit_bytes=20_000)
    given = [scheme + file for file in files]
    build_corpus(given, tmp_path / "one", tokenizer, reading=reading)
    seen: set[str] = set()

    def look(progress: BuildProgress) -> None:
        staged = {path.name for path in (tmp_path / "many").glob("staged-*")}
        assert progress.shards < 5 or "staged-train-00001.txt" not in staged  # which its shards were made of
        seen.update(staged)

    folder = f"{scheme}{tmp_path}/many"
    build_corpus(given, folder, tokenizer, reading=reading, workers=Processes(2), on_progress=look)
    assert content(tmp_path / "one") == content(tmp_path / "many")
    assert len(seen) > 10 and any(name.startswith("staged-held_out") for name in seen)


def test_pieces_hang_on_the_files_alone(files: list[str]) -> None:
    found = pieces_of(files, (), 0.1, "paragraphs")
    assert found is not None and [piece.number for piece in found] == list(range(len(found)))
    grouped = {Path(piece.files[0]).name: len(piece.files) for piece in found}
    assert grouped == {"a.jsonl": 1, "b0.txt": 5, "c.txt": 1, "d.txt.gz": 1, "e.tsv": 1}
    cut = [file for piece in found for file in piece.files if isinstance(file, Stretch)]
    assert {Path(file).name for file in cut} == {"a.jsonl", "c.txt"} and len(cut) > 6
    for layout, encoding, kinds in (("running", None, {"a.jsonl"}), ("sentences", "gb18030", set())):
        with reading_as(encoding):
            some = pieces_of(files, (), 0.1, layout) or []
        assert {Path(f).name for piece in some for f in piece.files if isinstance(f, Stretch)} == kinds
    assert pieces_of([*files, "-"], (), 0.1, "paragraphs") is None
    assert pieces_of(files, ["memory://a.txt"], 0.1, "paragraphs") is None
    assert not Address("https://host/a.txt").has_ranges and Address("s3://bucket/a.txt").has_ranges


def test_a_build_that_was_stopped_goes_on(files: list[str], tokenizer: Tokenizer, tmp_path: Path) -> None:
    build_corpus(files, tmp_path / "one", tokenizer, reading=READING)

    def stop(progress: BuildProgress) -> None:
        if progress.shards == 3:
            raise KeyboardInterrupt

    parallelism = os.environ.get("TOKENIZERS_PARALLELISM")
    with pytest.raises(KeyboardInterrupt):
        build_corpus(files, tmp_path / "many", tokenizer, reading=READING, workers=Processes(2), on_progress=stop)
    assert list((tmp_path / "many").glob("staged-*")) and os.environ.get("TOKENIZERS_PARALLELISM") == parallelism
    (tmp_path / "many/.staged-train-00099.txt.12ab.tmp").write_bytes(b"half")
    kept: list[int] = []
    build_corpus(
        *(files, tmp_path / "many", tokenizer),
        reading=READING,
        workers=Processes(2),
        on_progress=lambda progress: kept.append(progress.kept),
    )
    assert content(tmp_path / "one") == content(tmp_path / "many") and kept[-1] >= 3


def test_encoding_and_layout_reach_the_workers(files: list[str], tokenizer: Tokenizer, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        text = Path(files[-3]).read_text("utf-8")
        (tmp_path / name).write_text(text, encoding="gb18030")
    given = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    with reading_as("gb18030"):
        for folder, workers in (("one", 1), ("many", Processes(2))):
            build_corpus(given, tmp_path / folder, tokenizer, TokenSettings("running"), READING, workers)
    assert content(tmp_path / "one") == content(tmp_path / "many")


def refused(file: Path, tokenizer: Tokenizer, workers: Any) -> tuple[str, str]:
    folder = file.with_name("corpus")
    with pytest.raises(HeedfulError) as raised:
        build_corpus([str(file)], folder, tokenizer, reading=READING, workers=workers)
    return raised.value.what, str(raised.value.where)


def test_what_is_wrong_with_a_text_is_told_as_ever(files: list[str], tokenizer: Tokenizer, tmp_path: Path) -> None:
    broken, empty = tmp_path / "broken.jsonl", tmp_path / "empty.txt"
    lines = Path(files[0]).read_text("utf-8").splitlines()
    broken.write_text("\n".join([*lines[:120], "{", *lines[120:]]), "utf-8")
    empty.write_text("\n" * 40_000)
    for file in (broken, empty):
        assert refused(file, tokenizer, Processes(2)) == refused(file, tokenizer, 1)
    odd = tmp_path / "odd.txt"
    odd.write_text("\n\n".join(f"text {number} \0 text" for number in range(2000)))
    with pytest.warns(TextWarning, match=r"zero bytes \(NUL\) in .*odd.txt from byte 15,000 on"):
        build_corpus([str(odd)], tmp_path / "odd", tokenizer, reading=READING, workers=Processes(2))


def test_another_file_under_the_same_name_is_refused(files: list[str]) -> None:
    first, *_ = pieces_of(files, (), 0.1, "paragraphs") or []
    first.check()
    with pytest.raises(HeedfulError, match="not the file"):
        module.Piece(0, first.files, (1,), 0.1).check()
    with pytest.raises(HeedfulError, match="not found here"):
        module.Piece(0, (f"{place(files[0])}x",), (1,), 0.1).check()
