"""`heedful corpus build` and `show`."""

import json

from click.testing import CliRunner

from heedful.cli.corpus import command
from heedful.errors import HeedfulError
from heedful.text.bert_pipeline import SPECIAL_TOKENS, wordpiece_tokenizer
from heedful.text.tokenizer import Tokenizer

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "mat", "."]


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def prepared(tmp_path):
    vocabulary = {piece: i for i, piece in enumerate([*SPECIAL_TOKENS.values(), *WORDS])}
    Tokenizer(wordpiece_tokenizer(vocabulary, lowercase=True)).save(tmp_path / "t")
    rows = [{"body": f"History.\nThe cat sat on the mat. The dog ran {'.' * (i % 5)} zebra."} for i in range(40)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path / "a.jsonl", "-o", tmp_path / "c", "--tokenizer", tmp_path / "t", "--field", "body"


def test_build_and_show(tmp_path):
    options = ("--drop-headings", "--deduplicate", "--words", "--held-out", "0.3", "--workers", "2")
    result = run("build", *prepared(tmp_path), *options)
    assert result.exit_code == 0, result.output
    assert "40 documents read, 35 repeated ones dropped" in result.output
    options = ("--examples", 1, "--length", 24, "--pairs", "none", "--masking", "word", "--verify")
    shown = run("show", tmp_path / "c", *options)
    assert shown.exit_code == 0, shown.output
    assert "[CLS]" in shown.output and "[MASK]" in shown.output and "history" not in shown.output
    assert "1 – 1" in shown.output and "%" in shown.output


def test_static_examples(tmp_path):
    result = run("build", *prepared(tmp_path), "--static", "--duplicates", 3, "--length", 16, "--lines", "paragraphs")
    assert result.exit_code == 0, result.output
    assert "examples written ahead:" in result.output
    assert len(list((tmp_path / "c").glob("examples-16-*/*.safetensors"))) == 1


def test_held_out_file_and_lexicon(tmp_path):
    arguments = prepared(tmp_path)
    (tmp_path / "h.jsonl").write_text('{"body": "The cat ran."}')
    (tmp_path / "l.txt").write_text("the mat\n")
    result = run("build", *arguments, "--held-out-file", tmp_path / "h.jsonl", "--lexicon", tmp_path / "l.txt")
    assert result.exit_code == 0, result.output
    assert "held out:    4 tokens in 1 documents" in result.output
    shown = run("show", tmp_path / "c", "--masking", "phrase", "--length", 16)
    assert shown.exit_code == 0, shown.output


def test_nothing_held_out_is_said(tmp_path):
    result = run("build", *prepared(tmp_path), "--held-out", 0)
    assert "nothing is held out" in result.output


def test_wrong_field_is_named(tmp_path):
    *arguments, _ = prepared(tmp_path)
    result = run("build", *arguments, "text")
    assert isinstance(result.exception, HeedfulError) and "body" in str(result.exception)
