"""Messy files from the command line and from Python: bad rows, labels in two spellings, other encodings, no dev."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import heedful
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.runs.finetuning.material import Material
from heedful.runs.finetuning.run import finetune
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.run import Stage
from heedful.training.run_folder import RunFolder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, list(map(str, arguments)))


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    rows = [[f"the cat number {i}", ["good", "Good", "bad"][i % 3]] for i in range(60)]
    rows[4][1], rows[19][1], rows[7][0], rows[10] = "", "  ", "", ["the cat number 0", "bad"]
    path = tmp_path / "messy.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text", "label"], *rows])
    return path


def test_inspect_reads_all_of_it(messy: Path) -> None:
    found = json.loads(run("inspect", messy, "--json").output)["files"][0]
    assert found["examples"] == 58
    assert [row["where"] for row in found["bad"]] == [f"{messy}:6", f"{messy}:21"]
    told = {remark["what"]: remark["count"] for remark in found["remarks"]}
    assert told["examples with an empty text"] == 1 and told["repeated examples with another label"] == 1
    assert told["labels 'Good' that differ from 'good' only by case or spaces"] == 17
    shown = run("inspect", messy).output
    assert "2 rows cannot be used" in shown and f"{messy}:21  no label under 'label'" in shown


def test_finetune_refuses_bad_rows_or_leaves_them_out(tmp_path: Path, tiny_folder: Path, messy: Path) -> None:
    asked = ("finetune", "classify", "--model", tiny_folder, "--train", messy, "--budget", "2steps")
    refused = run(*asked, "-o", tmp_path / "a").exception
    assert isinstance(refused, HeedfulError) and "2 rows cannot be used" in refused.what
    assert f"{messy}:6, {messy}:21" == refused.where and "--bad-rows skip" in str(refused.remedy)
    more = ("--bad-rows", "skip", "--merge-labels", "case", "--dev", "10%")
    done = run(*asked, *more, "-o", tmp_path / "b")
    assert done.exit_code == 0, done.output
    for remark in ("train: 2 rows that cannot be used", "1 examples with an empty text, left out", "51 examples"):
        assert remark in done.output
    assert json.loads((tmp_path / "b/model/task.json").read_text())["labels"] == ["bad", "good"]
    assert "## On 10% of the training data" in (tmp_path / "b/model/README.md").read_text()
    # Whoever evaluates the model later need not merge by hand.
    (tmp_path / "test.csv").write_text("text,label\na cat,GOOD\nthe cat,Bad\n")
    assert "never showed" not in run("evaluate", tmp_path / "b", tmp_path / "test.csv").output


def test_python_hears_the_same(tmp_path: Path, tiny_folder: Path, messy: Path) -> None:
    told = {"task": "classify", "model": str(tiny_folder), "train": str(messy), "output": str(tmp_path / "run")}
    with pytest.raises(HeedfulError, match="2 rows cannot be used"):
        Material.of(FinetuningSettings(**told))
    notes: list[str] = []
    settings = FinetuningSettings(**told, bad_rows="skip", dev="20%", budget="2steps")
    finetune(settings, Stage(RunFolder(told["output"]), on_event=lambda e: notes.append(str(getattr(e, "text", "")))))
    assert any("2 rows that cannot be used, left out" in note for note in notes)
    assert any("differ from 'good' only by case" in note for note in notes)
    rows = [{"text": "a", "label": "x"}, {"text": "b"}, {"text": "c", "label": "y"}]
    kept = Material.of(FinetuningSettings(**{**told, "train": rows}, bad_rows="skip"))
    assert len(kept.train.examples) == 2 and "rows in memory:2" in kept.remarks()[0]


def test_an_encoding_is_for_every_verb_that_reads(tmp_path: Path, tiny_folder: Path) -> None:
    table = tmp_path / "a.csv"
    text = "text,label\n" + "".join(f"猫 number {i},{'好' if i % 2 else '坏'}\n" for i in range(20))
    table.write_bytes(text.encode("gb18030"))
    lines = tmp_path / "a.txt"
    lines.write_bytes("the cat\n猫\n\n".encode("utf-16"))
    pairs = tmp_path / "pairs.tsv"
    pairs.write_bytes(("source\ttarget\n" + "the cat\t猫\n" * 5).encode("utf-16"))
    out, gb, wide = tmp_path / "out", ("--encoding", "gb18030"), ("--encoding", "UTF-16")
    train = ("finetune", "classify", "--model", tiny_folder, "--train", table, "--budget", "1steps", "-o", out / "run")
    refused = run(*train).exception
    assert isinstance(refused, HeedfulError) and "--encoding gb18030" in str(refused.remedy)
    out.mkdir()
    translate = ("translate", "train", "--train", pairs, "--budget", "1steps", "--size", "tiny", "-o", out / "tr")
    for arguments in (
        (*train, *gb),
        ("evaluate", out / "run", table, *gb),
        ("predict", out / "run", table, "-o", out / "p.csv", *gb),
        ("predict", out / "run", lines, "-o", out / "p.jsonl", *wide),
        ("inspect", table, *gb),
        ("embed", tiny_folder, lines, "-o", out / "v.npy", *wide),
        ("score", tiny_folder, lines, *wide),
        ("tokenizer", "train", table, "-o", out / "tok", *gb),
        ("corpus", "build", lines, "-o", out / "corpus", "--tokenizer", out / "tok", *wide),
        (*translate, *wide),
        ("translate", "run", out / "tr", lines, *wide),
        ("translate", "evaluate", out / "tr", pairs, *wide),
        ("translate", "score", out / "tr", pairs, *wide),
    ):
        done = run(*arguments)
        assert done.exit_code == 0, (arguments, done.output, done.exception)
    assert heedful.evaluate(out / "run", table, encoding="gb18030", rounds=0).examples == 20
    assert "猫 number 19,好," in (out / "p.csv").read_text(encoding="utf-8")
    assert len((out / "p.jsonl").read_text().splitlines()) == 3
    assert "猫" in (out / "tok/vocab.txt").read_text(encoding="utf-8")


def test_a_table_without_a_header_is_read_by_numbers(tmp_path: Path, tiny_folder: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text("good,the cat\nbad,a dog\n")
    asked = ("finetune", "classify", "--model", tiny_folder, "--train", table, "-o", tmp_path / "run")
    refused = run(*asked).exception
    assert isinstance(refused, HeedfulError) and "there are: good, the cat" in refused.what
    assert "--text 1 --label 2" in str(refused.remedy)
    shown = run(*asked, "--text", "2", "--label", "1", "--peek", "2").output
    assert "0 = bad, 1 = good" in shown and "example 2" in shown


@pytest.mark.parametrize(
    ("task", "reads"), [("tag", "CoNLL files or JSON lines"), ("answer", "SQuAD files or JSON lines")]
)
def test_a_csv_for_another_task_is_called_one(tiny_folder: Path, messy: Path, task: str, reads: str) -> None:
    refused = run("finetune", task, "--model", tiny_folder, "--train", messy, "-o", "run").exception
    assert isinstance(refused, HeedfulError) and reads in refused.what and str(refused.where) == str(messy)
