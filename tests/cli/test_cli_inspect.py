"""`heedful inspect`."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from heedful.cli.inspect import command
from heedful.errors import HeedfulError

TRAIN = "label\ttext\n1\tthe cat sees the dog\n0\tthe dog\n0\tthe cat sees the dog\nragged\n1\tzebra 🙂\n1\t\n"
DEV = "label\ttext\n1\tthe dog\n2\tnew\n"


@pytest.fixture
def data(tmp_path):
    (tmp_path / "train.tsv").write_text("\ufeff" + TRAIN, encoding="utf-8")
    (tmp_path / "dev.tsv").write_text(DEV, encoding="utf-8")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_everything_as_json(data, tiny_folder):
    train, dev = data / "train.tsv", data / "dev.tsv"
    done = run(train, "--dev", dev, "--model", tiny_folder, "--max-length", 6, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    first, second = found["files"]
    assert (first["file"], first["task"], first["examples"], second["examples"]) == (str(train), "classify", 5, 2)
    (lengths,) = first["lengths"]
    assert (lengths["unit"], lengths["least"], lengths["most"]) == ("tokens", 2, 8)
    assert first["labels"] == {"1": 3, "0": 2} and first["limit"] == 6
    assert first["unknown_share"] == pytest.approx(1 / 18)  # 5 + 2 + 5 words, five letters and one [UNK]
    places = {remark["what"]: remark["places"] for remark in first["remarks"]}
    assert places == {
        "byte order mark at the start, passed over": [f"{train}:1"],
        "rows with another number of columns, left out": [f"{train}:5"],
        "examples longer than 6 tokens, which would be cut or read in windows": [
            f"{train}:2", f"{train}:4", f"{train}:6",
        ],
        "repeated examples with another label": [f"{train}:4 = {train}:2"],
        "examples with an empty text": [f"{train}:7"],
    }  # fmt: skip
    assert {remark["what"]: remark["places"] for remark in found["leaks"]} == {
        "dev examples that stand in the training data too": [f"{dev}:2 = {train}:3"],
        "dev examples with a label that the training data never has": [f"{dev}:3"],
    }


def test_as_a_text(data):
    done = run(data / "train.tsv", "--dev", data / "dev.tsv")
    assert done.exit_code == 0, done.output
    for part in (
        "5 examples to classify",
        "characters",
        "words",
        "60.0%",
        "█",
        "train.tsv:5",
        "1 dev examples that stand",
    ):
        assert part in done.stdout


def test_a_dev_file_of_its_own(data):
    (data / "own.tsv").write_text("label\ttext\n1\tnothing like it\n", encoding="utf-8")
    assert "train and dev have nothing in common" in run(data / "train.tsv", "--dev", data / "own.tsv").stdout


def test_the_limit_of_the_model(data, tiny_folder, tiny_tokenizer, tmp_path):
    found = json.loads(run(data / "dev.tsv", "--model", tiny_folder, "--json").stdout)
    assert found["files"][0]["limit"] == 512 and "leaks" not in found
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("".join(f"{piece}\n" for piece in tiny_tokenizer.vocabulary), encoding="utf-8")
    assert json.loads(run(data / "dev.tsv", "--model", vocabulary, "--json").stdout)["files"][0]["limit"] is None


@pytest.mark.parametrize(
    ("name", "content", "task", "labels"),
    [
        ("a.conll", "Ann\tB-PER\nsings\tO\n", "tag", {"PER": 1}),
        ("a.json", '{"data": [{"paragraphs": [{"context": "c d", "qas": [{"id": 1, "question": "q", '
                   '"answers": [{"text": "d", "answer_start": 2}]}]}]}]}', "answer", {"answer": 1}),
        ("a.jsonl", '{"question": "q", "choices": ["x", "y"], "label": 1}\n', "choose", {"1": 1}),
        ("a.csv", "text,score\na,1.5\nb,2\n", "regress", {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("with_model", [False, True])
def test_every_task_is_recognised(tmp_path, tiny_folder, name, content, task, labels, with_model):
    (tmp_path / name).write_text(content, encoding="utf-8")
    model = ["--model", tiny_folder] if with_model else []
    done = run(tmp_path / name, "--json", *model)
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["files"]
    assert (found["task"], found["labels"]) == (task, labels)
    assert run(tmp_path / name, *model).exit_code == 0


def test_the_task_and_the_columns_can_be_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("body,stars,note\ngood,5,n\nbad,1,m\n", encoding="utf-8")
    done = run(path, "--task", "regress", "--text", "body", "--pair", "note", "--label", "stars", "--json")
    (found,) = json.loads(done.stdout)["files"]
    assert found["task"] == "regress" and found["scale"] == {"least": 1.0, "mean": 3.0, "most": 5.0}


def test_without_labels(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("index\tsentence\n0\tx\n", encoding="utf-8")
    assert isinstance(run(path).exception, HeedfulError)
    assert json.loads(run(path, "--unlabelled", "--json").stdout)["files"][0]["labels"] == {}


def test_bad_files_are_told_with_their_line(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"label\ttext\n1\t\xff\n")
    failed = run(path)
    assert isinstance(failed.exception, HeedfulError) and failed.exception.where == f"{path}:2"


def test_it_does_without_torch(data, tiny_folder):
    program = "import sys; from heedful.cli.inspect import command; command(sys.argv[1:], standalone_mode=False); " \
        "assert 'torch' not in sys.modules"  # fmt: skip
    arguments = [data / "train.tsv", "--dev", data / "dev.tsv", "--model", tiny_folder]
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
