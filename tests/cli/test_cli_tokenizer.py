"""`heedful tokenizer train`, `extend` and `show`."""

import json

from click.testing import CliRunner

from heedful.cli.tokenizer import command
from heedful.errors import HeedfulError
from tests.gpt_folder import byte_level_tokenizer


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


def test_a_character_that_is_cut_into_bytes_is_shown_once(tmp_path):
    byte_level_tokenizer().save(tmp_path)
    shown = run("show", tmp_path, "跑跑")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.stdout.splitlines() if "│" in line]
    assert [row[2] for row in rows] == ["跑", "", ""] * 2
    assert [row[3] for row in rows] == ["0–1"] * 3 + ["1–2"] * 3


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


def a_tokenizer(folder):
    (folder / "text.txt").write_text("the cell divides, the cells divide; a cell wall 细胞\n" * 3, encoding="utf-8")
    assert run("train", folder / "text.txt", "-o", folder / "old", "--vocab-size", 40).exit_code == 0
    return folder / "old"


def last_pieces(old, new):
    before, after = ((folder / "vocab.txt").read_text(encoding="utf-8").splitlines() for folder in (old, new))
    assert after[: len(before)] == before
    return after[len(before) :]


def test_extend_by_a_list_of_words(tmp_path):
    old = a_tokenizer(tmp_path)
    (tmp_path / "words.txt").write_text("Saddles\nthe\n\ncell-wall\nall sea\nsaddles\nseas\n", encoding="utf-8")
    done = run("extend", old, "--words", tmp_path / "words.txt", "-o", tmp_path / "new")
    assert done.exit_code == 0, done.output
    assert last_pieces(old, tmp_path / "new") == ["saddles", "seas"]
    told = done.stdout.splitlines()
    assert told[0].startswith("added, 2: saddles (") and ", seas (" in told[0]
    assert told[1:3] == ["there already, 1: the", "not one word to BERT, 2: cell-wall (line 4), all sea (line 5)"]
    assert told[3] == f"{tmp_path / 'new'}: 40 pieces + 2 = 42"
    assert "│ saddles │ 40 " in run("show", tmp_path / "new", "SADDLES").stdout


def test_extend_by_a_text(tmp_path):
    old = a_tokenizer(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"body": "Saddles shed seas. 2024"}\n' * 4, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"body": "the seas 细胞"}\n{"body": "a lead"}\n', encoding="utf-8")
    options = ["--from-text", tmp_path / "a.jsonl", "--from-text", tmp_path / "b.jsonl", "--field", "body"]
    done = run("extend", old, *options, "--count", 2, "-o", tmp_path / "two")
    assert done.exit_code == 0, done.output
    assert last_pieces(old, tmp_path / "two") == ["seas"]  # five times; the others are too rare
    assert run("extend", old, *options, "--count", 2, "--min-count", 4, "-o", tmp_path / "three").exit_code == 0
    assert last_pieces(old, tmp_path / "three") == ["seas", "saddles"]
    (tmp_path / "words.txt").write_text("seas\n")
    both = run("extend", old, *options, "--words", tmp_path / "words.txt", "--min-count", 1, "-o", tmp_path / "both")
    assert both.exit_code == 0 and last_pieces(old, tmp_path / "both") == ["seas", "saddles", "shed", "lead"]


def test_a_long_list_is_cut_short_in_the_report(tmp_path):
    old = a_tokenizer(tmp_path)
    words = [a + b + c for a in "cdehi" for b in "ael" for c in "lst"]
    (tmp_path / "words.txt").write_text("\n".join(words))
    done = run("extend", old, "--words", tmp_path / "words.txt", "-o", tmp_path / "new")
    assert done.exit_code == 0, done.output
    added = last_pieces(old, tmp_path / "new")
    assert len(added) > 40 and f", and {len(added) - 40} more\n" in done.stdout and f" {added[39]} (" in done.stdout


def test_extending_refuses_plainly_and_writes_nothing(tmp_path):
    old = a_tokenizer(tmp_path)
    (tmp_path / "known.txt").write_text("the\ncell wall\n")
    (tmp_path / "broken.txt").write_bytes(b"good\nb\xffd\n")
    (tmp_path / "text.jsonl").write_text('{"body": "x"}\n')
    run("train", tmp_path / "text.txt", "-o", tmp_path / "bpe", "--kind", "bpe", "--vocab-size", 270)
    for arguments, said in (
        ((old,), "--words FILE, --from-text FILE"),
        ((old, "--words", tmp_path / "known.txt"), "has all of these words already"),
        ((old, "--words", tmp_path / "broken.txt"), "broken.txt:2"),
        ((old, "--words", tmp_path / "nowhere.txt"), "nowhere.txt"),
        ((old, "--from-text", tmp_path / "text.jsonl"), "text.jsonl:1"),
        ((tmp_path / "bpe", "--words", tmp_path / "known.txt"), "WordPiece"),
        ((tmp_path, "--words", tmp_path / "known.txt"), "no tokenizer.json"),
    ):
        failed = run("extend", *arguments, "-o", tmp_path / "new")
        assert isinstance(failed.exception, HeedfulError) and said in str(failed.exception), failed.output
        assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob(".*"))
