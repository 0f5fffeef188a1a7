"""Sentence pairs from tables, JSON lines and two texts; what is wrong is told with file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from heedful.data.bitext.reading import EMPTY, SentencePair, read_pairs
from heedful.errors import HeedfulError

PAIRS = [("A dog runs.", "Ein Hund läuft."), ("Two men", "Zwei Männer"), ('He says "hi".', "Er sagt „Hallo“.")]


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def texts(pairs: list[SentencePair]) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


@pytest.fixture(params=["tsv", "csv", "jsonl", "tsv.gz", "two texts"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """The same pairs in every form that is read."""
    rows = [("id", "en", "de"), *((str(number), *pair) for number, pair in enumerate(PAIRS))]
    tab = "".join("\t".join(row) + "\n" for row in rows)
    if request.param == "tsv":
        return [write(tmp_path / "p.tsv", tab)]
    if request.param == "tsv.gz":
        return [write(tmp_path / "p.tsv.gz", gzip.compress(tab.encode()))]
    if request.param == "csv":
        quoted = "".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in rows)
        return [write(tmp_path / "p.csv", quoted)]
    if request.param == "jsonl":
        lines = (json.dumps({"en": source, "de": target}) for source, target in PAIRS)
        return [write(tmp_path / "p.jsonl", "\n".join(lines))]
    sides = zip(*PAIRS, strict=True)
    return [
        write(tmp_path / f"p.{name}", "\n".join(side) + "\n") for name, side in zip(("en", "de"), sides, strict=True)
    ]


def test_pairs_come_in_order_from_every_form(files: list[Path]) -> None:
    found = read_pairs(files, "en", "de")
    assert texts(list(found.examples)) == PAIRS
    assert not found.remarks
    assert all(pair.where.startswith(str(files[0])) for pair in found.examples)


def test_the_columns_decide_which_side_is_which(tmp_path: Path) -> None:
    table = write(tmp_path / "p.tsv", "de\ten\nHund\tdog\n")
    assert texts(list(read_pairs([table], "en", "de").examples)) == [("dog", "Hund")]
    assert texts(list(read_pairs([table], "de", "en").examples)) == [("Hund", "dog")]
    assert texts(list(read_pairs([table], "de", "de").examples)) == [("Hund", "Hund")]


def test_empty_sides_are_left_out_and_counted(tmp_path: Path) -> None:
    table = write(tmp_path / "p.tsv", "en\tde\na\t\n b \tB \n \tC\n")
    found = read_pairs([table], "en", "de")
    assert texts(list(found.examples)) == [("b", "B")]
    (remark,) = found.remarks
    assert (remark.what, remark.count, remark.places) == (EMPTY, 2, (f"{table}:2", f"{table}:4"))
    two = [write(tmp_path / "p.en", "a\n\nc\n"), write(tmp_path / "p.de", "A\nB\n\n")]
    found = read_pairs(two, "en", "de")
    assert texts(list(found.examples)) == [("a", "A")]
    assert found.remarks[0].places == (f"{two[0]}:2", f"{two[0]}:3")


@pytest.mark.parametrize("swapped", [False, True])
def test_texts_of_different_lengths_are_refused(tmp_path: Path, swapped: bool) -> None:
    short, long = write(tmp_path / "short", "a\nb\n"), write(tmp_path / "long", "A\nB\nC\nD\n")
    with pytest.raises(HeedfulError, match="different numbers of lines") as error:
        read_pairs([long, short] if swapped else [short, long], "en", "de")
    assert f"2 in {short}" in error.value.what
    assert f"4 in {long}" in error.value.what
    assert error.value.where == f"{long}:3"


def test_a_missing_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    table = write(tmp_path / "p.tsv", "en\tfr\na\tb\n")
    with pytest.raises(HeedfulError, match=r"no column 'de' \(there are: en, fr\)") as error:
        read_pairs([table], "en", "de")
    assert error.value.where == f"{table}:1"
    assert "`target`" in str(error.value)
    with pytest.raises(HeedfulError, match="no column 'x'") as error:
        read_pairs([table], "x", "fr")
    assert "`source`" in str(error.value)


def test_a_field_that_is_missing_in_one_line_is_told_with_the_line(tmp_path: Path) -> None:
    table = write(tmp_path / "p.jsonl", '{"en": "a", "de": "A"}\n{"en": "b"}\n')
    with pytest.raises(HeedfulError, match="no text under 'de', but null") as error:
        read_pairs([table], "en", "de")
    assert error.value.where == f"{table}:2"


def test_broken_text_is_told_with_file_and_line(tmp_path: Path) -> None:
    table = write(tmp_path / "p.tsv", b"en\tde\na\tA\nb\t\xff\n")
    with pytest.raises(HeedfulError, match="not UTF-8") as error:
        read_pairs([table], "en", "de")
    assert error.value.where == f"{table}:3"
    two = [write(tmp_path / "p.en", "a\nb\n"), write(tmp_path / "p.de", b"A\n\xe4\n")]
    with pytest.raises(HeedfulError, match="not UTF-8") as error:
        read_pairs(two, "en", "de")
    assert error.value.where == f"{two[1]}:2"


def test_a_byte_order_mark_on_either_side_is_passed_over(tmp_path: Path) -> None:
    two = [write(tmp_path / name, b"\xef\xbb\xbfx\n") for name in ("p.en", "p.de")]
    found = read_pairs(two, "en", "de")
    assert texts(list(found.examples)) == [("x", "x")]
    assert [remark.places[0] for remark in found.remarks] == [f"{path}:1" for path in two]


@pytest.mark.parametrize("content", ["", "en\tde\n", "en\tde\n\t\n"])
def test_files_without_pairs_are_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(HeedfulError) as error:
        read_pairs([write(tmp_path / "p.tsv", content)], "en", "de")
    assert "p.tsv" in str(error.value.where)
    with pytest.raises(HeedfulError, match="no pair"):
        read_pairs([write(tmp_path / name, "") for name in ("p.en", "p.de")], "en", "de")


def test_one_or_two_files_make_pairs(tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match="3 files do not make pairs"):
        read_pairs([tmp_path / "a", tmp_path / "b", tmp_path / "c"], "en", "de")


def test_one_text_alone_is_told_to_have_another_side(tmp_path: Path) -> None:
    path = write(tmp_path / "train.en", "A dog runs.\nA cat sleeps.\n")
    with pytest.raises(HeedfulError, match="one text, and pairs have two sides"):
        read_pairs([path], "source", "target")
