"""`heedful translate run`, `translate score` and `export`."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heedful.cli.main import cli
from heedful.decoding import Beam, Sampling
from heedful.errors import HeedfulError
from heedful.inference.load import load_translator
from heedful.inference.translator import Translator

TEXTS = ["the cat", "", "我爱北京", "love the dog"]


@pytest.fixture(scope="module")
def run(tiny_translators: dict[str, Path]) -> Path:
    return tiny_translators["transformer"]


@pytest.fixture(scope="module")
def translator(run: Path) -> Translator:
    return load_translator(run, "cpu")


def heedful(*arguments: object, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=given)


def lines(*arguments: object, given: str | None = None) -> list[str]:
    done = heedful("translate", "run", *arguments, given=given)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout.splitlines()


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def plain(path: Path) -> Path:
    return write(path, "".join(f"{text}\n" for text in TEXTS))


def test_a_line_for_each_line(run: Path, translator: Translator, tmp_path: Path) -> None:
    expected = translator.translate(TEXTS, max_length=8)
    path = plain(tmp_path / "a.txt")
    assert lines(run, path, "--max-length", 8) == expected
    assert lines(run, "-", "--max-length", 8, given=path.read_text(encoding="utf-8")) == expected
    assert lines(run, "--max-length", 8, given=path.read_text(encoding="utf-8")) == expected
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert lines(run, packed, "--max-length", 8) == expected


def test_tables_and_json_lines_by_column(run: Path, translator: Translator, tmp_path: Path) -> None:
    texts = [text for text in TEXTS if text]
    expected = translator.translate(texts, max_length=8)
    table = write(tmp_path / "a.tsv", "id\ten\tother\n" + "".join(f"1\t{text}\tx\n" for text in texts))
    assert lines(run, table, "--max-length", 8) == expected
    objects = write(tmp_path / "a.jsonl", "".join(json.dumps({"t": text}) + "\n" for text in texts))
    assert lines(run, objects, "--max-length", 8, "--column", "t") == expected


def test_the_output_file_is_whole_or_not_there(run: Path, translator: Translator, tmp_path: Path) -> None:
    done = heedful("translate", "run", run, plain(tmp_path / "a.txt"), "-o", tmp_path / "b.txt", "--max-length", 8)
    assert done.exit_code == 0 and done.stdout == "" and "4 texts in" in done.stderr
    assert (tmp_path / "b.txt").read_text(encoding="utf-8").split("\n")[:-1] == translator.translate(
        TEXTS, max_length=8
    )
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"the cat\n\xff\n")
    failed = heedful("translate", "run", run, bad, "-o", tmp_path / "c.txt")
    assert isinstance(failed.exception, HeedfulError) and failed.exception.where == f"{bad}:2"
    assert not (tmp_path / "c.txt").exists()


def test_a_row_that_cannot_be_read_is_an_error(run: Path, tmp_path: Path) -> None:
    table = write(tmp_path / "a.tsv", "en\tx\n" + "the cat\tx\n" * 60 + "the dog\n")
    failed = heedful("translate", "run", run, table, "-o", tmp_path / "b.txt", "--max-length", 3, "--beam", 1)
    assert isinstance(failed.exception, HeedfulError) and "a.tsv:62" in str(failed.exception)
    failed = heedful("translate", "run", run, write(tmp_path / "c.tsv", "a\tb\n1\t2\n"))
    assert isinstance(failed.exception, HeedfulError) and "'en'" in str(failed.exception)


def test_search_options(run: Path, translator: Translator, tmp_path: Path) -> None:
    path = plain(tmp_path / "a.txt")
    best = translator.hypotheses(TEXTS, Beam(4, 0.3, 3), 8)
    found = [
        line.split("\t")
        for line in lines(run, path, "--beam", 4, "--length-penalty", 0.3, "--n-best", 3, "--max-length", 8)
    ]
    assert [(int(number), text) for number, _, text in found] == [
        (number, one.text) for number, some in enumerate(best, start=1) for one in some
    ]
    assert [float(score) for _, score, _ in found] == pytest.approx([o.score for some in best for o in some], abs=1e-3)
    objects = [json.loads(line) for line in lines(run, path, "--beam", 4, "--n-best", 2, "--json", "--max-length", 8)]
    assert [one["text"] for one in objects] == TEXTS
    assert [len(one["translations"]) for one in objects] == [2, 1, 2, 2]
    assert objects[0]["translations"][0].keys() == {"text", "score", "log_probability", "finished"}


def test_samples(run: Path, translator: Translator, tmp_path: Path) -> None:
    path = plain(tmp_path / "a.txt")
    how = Sampling(0.7, 5, 0.9, 2)
    expected = [one.text for some in translator.hypotheses(TEXTS, how, 8, seed=3) for one in some]
    options = ("--temperature", 0.7, "--top-k", 5, "--top-p", 0.9, "--n-best", 2, "--seed", 3, "--max-length", 8)
    assert [line.split("\t")[2] for line in lines(run, path, "--sample", *options)] == expected
    refused = heedful("translate", "run", run, path, "--top-k", 5)
    assert refused.exit_code == 2 and "--sample" in refused.stderr


@pytest.mark.parametrize(
    "wrong", [["--n-best", 6], ["--length-penalty", -1], ["--sample", "--top-p", 2], ["--engine", "x"]]
)
def test_impossible_options_are_refused(run: Path, wrong: list[object]) -> None:
    assert isinstance(heedful("translate", "run", run, *wrong, given="the cat\n").exception, HeedfulError)


def test_alignments_are_drawn(run: Path, tiny_translators: dict[str, Path], tmp_path: Path) -> None:
    path, page = plain(tmp_path / "a.txt"), tmp_path / "looks.html"
    done = heedful("translate", "run", run, path, "--alignments", page, "--layer", -2, "--head", 2, "--max-length", 8)
    assert done.exit_code == 0 and "looks.html" in done.stderr
    html = page.read_text(encoding="utf-8")
    assert "en → zh" in html and "layer 1 of 2, head 2" in html and html.count("<figure") >= 1 and "爱" in html
    recurrent = heedful(
        "translate", "run", tiny_translators["attention"], path, "--alignments", page, "--max-length", 8, "--overwrite"
    )
    assert recurrent.exit_code == 0 and "The decoder&#x27;s attention" in page.read_text(encoding="utf-8")
    failed = heedful("translate", "run", run, path, "--alignments", page, "--overwrite", "--head", 9, "--max-length", 8)
    assert isinstance(failed.exception, HeedfulError)
    failed = heedful("translate", "run", tiny_translators["rnn"], path, "--alignments", page, "--overwrite")
    assert isinstance(failed.exception, HeedfulError)


def test_long_texts_are_cut_with_a_word(run: Path) -> None:
    done = heedful("translate", "run", run, "--max-length", 3, given="the cat " * 100 + "\nthe dog\n")
    assert "1 texts were longer than 64 tokens" in done.stderr and len(done.stdout.splitlines()) == 2


def test_line_ends_in_a_translation_do_not_break_the_order(
    run: Path, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.text.tokenizer import Tokenizer

    monkeypatch.setattr(Tokenizer, "decode", lambda self, ids: "one\ntwo\u2028three")
    assert lines(run, "--max-length", 3, given="the cat\nthe dog\n") == ["one two three"] * 2


def test_nothing_comes_of_nothing(run: Path, tmp_path: Path) -> None:
    assert lines(run, write(tmp_path / "empty.txt", "")) == []


def test_scores_of_references(run: Path, translator: Translator, tmp_path: Path) -> None:
    pairs = [("the cat", "我爱北京"), ("love", "dog")]
    expected = translator.score(pairs)
    table = write(tmp_path / "a.tsv", "zh\ten\n" + "".join(f"{target}\t{source}\n" for source, target in pairs))
    for files in (
        [table],
        [write(tmp_path / "a.en", "the cat\nlove\n"), write(tmp_path / "a.zh", "我爱北京\ndog\n")],
    ):
        done = heedful("translate", "score", run, *files, "--json")
        assert done.exit_code == 0, (done.output, done.exception)
        *found, whole = map(json.loads, done.stdout.splitlines())
        assert [one["log_probability"] for one in found] == pytest.approx(expected, abs=1e-4)
        assert [one["symbols"] for one in found] == [5, 2]
        assert whole["whole"] and whole["log_probability"] == pytest.approx(sum(expected), abs=1e-4)
        assert whole["perplexity"] == pytest.approx(math.exp(-sum(expected) / 7), rel=1e-4)
    assert found[1]["where"] == f"{tmp_path / 'a.en'}:2"
    shown = heedful("translate", "score", run, table).stdout.splitlines()
    assert len(shown) == 3 and shown[-1].startswith("whole") and "7 symbols" in shown[-1]
    named = write(tmp_path / "b.tsv", "x\ty\nthe cat\t我爱北京\n")
    assert heedful("translate", "score", run, named, "--source", "x", "--target", "y").exit_code == 0


def test_what_cannot_be_scored_is_told(run: Path, tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.en", "the cat\nlove\n"), write(tmp_path / "a.zh", "我爱北京\n")
    for files in ([one, two], [write(tmp_path / "a.tsv", "a\tb\n1\t2\n")], [write(tmp_path / "b.tsv", "")]):
        assert isinstance(heedful("translate", "score", run, *files).exception, HeedfulError)
    long = write(tmp_path / "c.tsv", "en\tzh\n" + "the cat " * 50 + "\t我爱\nthe\t\n")
    done = heedful("translate", "score", run, long)
    assert "1 pairs had a side longer than 64 tokens" in done.stderr and "empty side" in done.stderr


def test_export(run: Path, tiny_translators: dict[str, Path], tmp_path: Path) -> None:
    done = heedful("export", run, "--to", "ctranslate2", "-o", tmp_path / "a")
    assert done.exit_code == 0 and (tmp_path / "a" / "model.bin").is_file(), (done.output, done.exception)
    again = heedful("export", run, "--to", "ctranslate2", "-o", tmp_path / "a")
    assert isinstance(again.exception, HeedfulError) and "--overwrite" in str(again.exception)
    assert heedful("export", run, "--to", "ctranslate2", "-o", tmp_path / "a", "--overwrite").exit_code == 0
    refused = heedful("export", tiny_translators["rnn"], "--to", "ctranslate2", "-o", tmp_path / "b")
    assert isinstance(refused.exception, HeedfulError) and not (tmp_path / "b").exists()
    other = heedful("export", run, "--to", "onnx", "-o", tmp_path / "b")
    assert isinstance(other.exception, HeedfulError) and not (tmp_path / "b").exists()


def test_the_other_engine_on_the_command_line(run: Path, tmp_path: Path) -> None:
    path = plain(tmp_path / "a.txt")
    assert len(lines(run, path, "--engine", "ctranslate2", "--beam", 1, "--max-length", 8)) == 4


def test_evaluate_gives_what_sacrebleu_gives(run: Path, translator: Translator, tmp_path: Path) -> None:
    from heedful.tasks.translate_scores import Scorer

    sources, right = ["the cat", "love the dog"], ["我 爱 北京", "中国"]
    rows = "".join(f"{a}\t{b}\n" for a, b in zip(sources, right, strict=True))
    path, out = write(tmp_path / "a.tsv", "en\tzh\n" + rows), tmp_path / "said.txt"
    asked = ("translate", "evaluate", run, path, "--beam", 2, "-o", out)
    said = translator.translate(sources, beam=2)
    expected = Scorer(right, "zh").scores(said)
    report = json.loads(heedful(*asked, "--json").stdout)
    assert report["pairs"] == 2 and report["scores"] == pytest.approx(dict(expected))
    assert "tok:zh" in report["signatures"]["bleu"] and out.read_text(encoding="utf-8").splitlines() == said
    assert "--overwrite" in str(heedful(*asked).exception)
    shown = heedful(*asked, "--overwrite").stdout
    assert f"chrf {expected['chrf']:6.2f}" in shown and "tok:zh" in shown and "2 pairs" in shown


@pytest.mark.parametrize("option", [("--head", 9), ("--layer", 9)])
def test_what_cannot_be_drawn_is_refused_before_the_work(run: Path, tmp_path: Path, option: tuple[str, int]) -> None:
    out = tmp_path / "out.txt"
    page = ("--alignments", tmp_path / "a.html", "-o", out)
    done = heedful("translate", "run", run, plain(tmp_path / "a.txt"), *page, *option)
    assert isinstance(done.exception, HeedfulError) and not out.exists()


def test_a_ragged_table_is_refused_before_anything_is_said(run: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "en\tzh\nthe cat\t猫\nthe dog\n")
    done = heedful("translate", "run", run, path)
    assert isinstance(done.exception, HeedfulError) and "another number of columns" in str(done.exception)
    assert done.stdout == ""


def test_models_of_the_other_kind_are_named(run: Path, tiny_folder: Path) -> None:
    wrong = heedful("translate", "run", tiny_folder, given="the cat\n").exception
    assert isinstance(wrong, HeedfulError) and "none that translates" in str(wrong)
    other = heedful("embed", run, "-", "-o", "x.npy", given="the cat\n").exception
    assert isinstance(other, HeedfulError) and "heedful translate run" in str(other)


def test_every_row_has_its_result_also_an_empty_one(run: Path, tmp_path: Path) -> None:
    path = plain(tmp_path / "a.txt")
    done = heedful("translate", "run", run, path, "--max-length", 8, "--json")
    assert [one.get("empty", False) for one in map(json.loads, done.stdout.splitlines())] == [False, True, False, False]
    assert "1 of 4 texts are blank" in done.stderr
    pairs = write(tmp_path / "a.tsv", "en\tzh\nthe cat\t我爱\n\t北京\nthe dog\t\n")
    done = heedful("translate", "score", run, pairs, "--json")
    *each, whole = map(json.loads, done.stdout.splitlines())
    assert [one.get("empty", False) for one in each] == [False, True, True]
    assert whole["log_probability"] == each[0]["log_probability"] and "2 pairs with an empty side" in done.stderr
    done = heedful("translate", "evaluate", run, pairs, "--beam", 1, "-o", tmp_path / "said.txt", "--json")
    assert json.loads(done.stdout)["pairs"] == 1
    assert len((tmp_path / "said.txt").read_text(encoding="utf-8").splitlines()) == 3
