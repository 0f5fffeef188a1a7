"""`heedful similarity` shows any text as it is, in tables of any size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heedful.cli.similarity import command


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def test_markup_and_emoji_codes_are_plain_text(tiny_folder: Path) -> None:
    shown = run(tiny_folder, "path [/usr/bin] x", "a [note] :smile:").output
    assert "path [/usr/bin] x" in shown
    assert "a [note] :smile:" in shown


def test_many_texts_are_shown_whole(tiny_folder: Path) -> None:
    shown = run(tiny_folder, *["the cat"] * 30).output
    assert "…" not in shown
    assert shown.count("1.0000") == 900


def test_json(tiny_folder: Path) -> None:
    told = json.loads(run(tiny_folder, "the cat", "the dog", "--json").stdout)
    assert told["cosine"][0][0] == 1.0
    assert told["texts"] == ["the cat", "the dog"]


def test_a_cut_text_is_told_plainly(tiny_folder: Path) -> None:
    done = run(tiny_folder, "cat " * 600, "dog")
    assert "warning: 1 of 2 texts were longer than 512 tokens" in done.stderr


def test_words_that_the_model_does_not_know_are_told(tiny_folder: Path) -> None:
    done = run(tiny_folder, "the Łódź cat", "the dog, Łódź", "Ж")
    assert "warning: the model does not know Łódź, Ж: " in done.stderr
    assert not run(tiny_folder, "the cat", "the dog").stderr


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("", "{0}\t{1}\t{2}"),
        ("Word 1\tWord 2\tHuman (mean)\n", "{0}\t{1}\t{2}"),
        ("score\tgenre\tsentence1\tsentence2\n", "{2}\tnews\t{0}\t{1}"),
        ("Similarity\tQuery\tPositive\n", "{2}\t{0}\t{1}"),
    ],
)
def test_judged_pairs_stand_where_the_header_says(tiny_folder: Path, tmp_path: Path, header: str, row: str) -> None:
    pairs = [("the cat", "a dog", 1.5), ("love", "love love", 4.0), ("unaffordable", "the cat", 2.0), ("b", "c", 0)]
    plain, named = tmp_path / "plain.tsv", tmp_path / "named.tsv"
    plain.write_text("".join(f"{one}\t{two}\t{score}\n" for one, two, score in pairs), encoding="utf-8")
    named.write_text(header + "".join(row.format(*pair) + "\n" for pair in pairs), encoding="utf-8")
    found = run(tiny_folder, "--pairs", named).output
    assert found == run(tiny_folder, "--pairs", plain).output and "over 4 pairs" in found


def test_judged_pairs_are_read_in_other_encodings(tiny_folder: Path, tmp_path: Path) -> None:
    text = "中国\tthe cat\t1.5\nlove\t北京\t4.0\na dog\tthe cat\t3.0\n"
    (tmp_path / "utf-8.tsv").write_text(text, encoding="utf-8")
    (tmp_path / "other.tsv").write_text(text, encoding="gb18030")
    found = run(tiny_folder, "--pairs", tmp_path / "other.tsv", "--encoding", "gb18030").output
    assert found == run(tiny_folder, "--pairs", tmp_path / "utf-8.tsv").output and "over 3 pairs" in found
