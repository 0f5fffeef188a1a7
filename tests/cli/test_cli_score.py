"""`heedful score`."""

import json
import math

import pytest
from click.testing import CliRunner

from heedful.checkpoints.encoder_folder import save_model
from heedful.cli.score import command
from heedful.errors import HeedfulError
from heedful.models.elmo import ElmoForPretraining, initialise, sized
from heedful.text.elmo_pipeline import character_tokenizer


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


def test_both_directions_of_an_elmo_and_its_words(tmp_path):
    words = ["<UNK>", "<S>", "</S>", "the", "cat"]
    config = sized("nano", len(words))
    model = ElmoForPretraining(config)
    initialise(model, config, seed=0)
    save_model(model, tmp_path / "elmo", character_tokenizer())
    (tmp_path / "elmo" / "words.txt").write_text("".join(f"{word}\n" for word in words))
    shown = run(tmp_path / "elmo", "-", input="the cat\nthe wolf\n")
    assert shown.exit_code == 0, shown.output
    assert all("forward" in line and "backward" in line and "a word" in line for line in shown.stdout.splitlines())
    assert "says one of 5 words (words.txt in its folder)" in shown.stderr
    assert "16.7% of the words are not among them and count as <UNK>" in shown.stderr
    *lines, whole = map(
        json.loads, run(tmp_path / "elmo", "-", "--json", input="the cat\nthe wolf\n").stdout.splitlines()
    )
    assert whole["kind"] == "both directions" and whole["tokens"] == 6 and whole["unknown"] == 1
    for one in (*lines, whole):
        ways = math.log(one["forward_perplexity"]) + math.log(one["backward_perplexity"])
        assert one["loss"] == pytest.approx(ways / 2)
    failed = run(tmp_path / "elmo", "-", "--max-length", 9, input="the cat\n")
    assert isinstance(failed.exception, HeedfulError) and "has no effect" in failed.exception.what
