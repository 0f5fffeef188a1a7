"""`heedful tokenizer train` and `show`."""

import json

from click.testing import CliRunner

from heedful.cli.tokenizer import command
from heedful.errors import HeedfulError


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_train_and_show(tmp_path):
    (tmp_path / "a.txt").write_text("she loved 中国\n\nhe loves 北京\n" * 3, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": "they are loving it"}) * 1, encoding="utf-8")
    trained = run("train", tmp_path / "a.txt", tmp_path / "b.jsonl", "-o", tmp_path / "t", "--vocab-size", 60)
    assert trained.exit_code == 0, trained.output
    pieces = (tmp_path / "t" / "vocab.txt").read_text(encoding="utf-8").split("\n")
    assert f"wordpiece, {len(pieces) - 1} pieces" in trained.stdout
    assert json.loads((tmp_path / "t" / "tokenizer_config.json").read_text())["model_max_length"] == 512

    shown = run("show", tmp_path / "t", "loved 中", "--pair", "he")
    assert shown.exit_code == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.stdout.splitlines() if "│" in line]
    assert rows[0] == ["[CLS]", "2", "", "", "", ""]
    assert rows[-4] == ["中", str(pieces.index("中")), "中", "6–7", "1", "A"]
    assert rows[-2] == ["he", str(pieces.index("he")), "he", "0–2", "0", "B"]


def test_field_kind_and_case(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"body": "Café Café"}\n')
    options = ["--field", "body", "--kind", "bpe", "--cased", "--vocab-size", 270, "--max-length", 64]
    assert run("train", tmp_path / "a.jsonl", "-o", tmp_path / "t", *options).exit_code == 0
    names = {file.name for file in (tmp_path / "t").iterdir()}
    settings = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    assert names == {*settings, "vocab.json", "merges.txt"}
    assert json.loads((tmp_path / "t" / "tokenizer_config.json").read_text())["model_max_length"] == 64


def test_a_missing_field_is_told_with_its_line(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"body": "x"}\n')
    failed = run("train", tmp_path / "a.jsonl", "-o", tmp_path / "t")
    assert isinstance(failed.exception, HeedfulError)
    assert failed.exception.where == f"{tmp_path / 'a.jsonl'}:1" and "--field" in str(failed.exception)
    assert not (tmp_path / "t").exists()
