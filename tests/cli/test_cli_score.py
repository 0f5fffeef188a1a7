"""`heedful score`."""

import json
import math

import pytest
from click.testing import CliRunner

from heedful.cli.score import command
from heedful.errors import HeedfulError


def run(*arguments, **options):
    return CliRunner().invoke(command, [str(argument) for argument in arguments], **options)


def test_lines_and_the_whole(tiny_folder, tmp_path):
    (tmp_path / "lines.txt").write_text("the cat\n\n我爱北京 🙂\n" + "dog " * 60 + "\n", encoding="utf-8")
    done = run(tiny_folder, tmp_path / "lines.txt", "--json", "--max-length", 12)
    assert done.exit_code == 0, done.output
    *lines, whole = map(json.loads, done.stdout.splitlines())
    assert [line["line"] for line in lines] == [1, 2, 3, 4]
    assert lines[1]["pseudo_perplexity"] is None and lines[1]["empty"] == 1
    assert [line["tokens"] for line in lines] == [2, 0, 5, 60]
    assert whole["whole"] and whole["tokens"] == 67 and whole["texts"] == 4
    mean = sum(line["loss"] * line["tokens"] for line in lines if line["tokens"]) / 67
    assert whole["loss"] == pytest.approx(mean) and whole["pseudo_perplexity"] == pytest.approx(math.exp(mean))
    assert "perplexity" not in whole and whole["windowed"] == 1
    assert "1 lines are empty" in done.stderr
    assert "1 lines are longer than 12 tokens" in done.stderr and "1.5% of the tokens are [UNK]" in done.stderr


def test_standard_input_as_plain_text(tiny_folder):
    done = run(tiny_folder, "-", input="the cat\nthe dog\n")
    assert done.exit_code == 0, done.output
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["line", "line", "whole"]
    assert "(2 lines)" in done.stdout and "4 tokens" in done.stdout.splitlines()[-1]


def test_nothing_to_score(tiny_folder, tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    failed = run(tiny_folder, tmp_path / "empty.txt")
    assert isinstance(failed.exception, HeedfulError) and failed.exception.where == str(tmp_path / "empty.txt")


def test_broken_utf8_is_told_with_its_line(tiny_folder, tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"the cat\n\xff\n")
    failed = run(tiny_folder, tmp_path / "bad.txt")
    assert isinstance(failed.exception, HeedfulError) and failed.exception.where == f"{tmp_path / 'bad.txt'}:2"
