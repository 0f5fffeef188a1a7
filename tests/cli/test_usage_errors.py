"""What click refuses is told like every other error, with a remedy; and so are names of models that are no folders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import heedful
from heedful.cli.main import cli


def told(*arguments: object) -> str:
    command = [sys.executable, "-m", "heedful", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("arguments", "what", "remedy"),
    [
        (["finetune", "classify", "--trian", "x"], "there is no option --trian", "did you mean --train"),
        (["embed", "MODEL"], "Missing argument 'INPUT'", "heedful embed [OPTIONS] MODEL INPUT"),
        (["emed"], "No such command 'emed'", "did you mean embed?"),
        (["translate", "tarin"], "No such command 'tarin'", "did you mean train?"),
        (["finetune", "--peek", "0"], "0 is not in the range", "give another value"),
        (["similarity", "MODEL", "a"], "give two texts or more", "heedful similarity --help"),
    ],
)
def test_a_wrong_command_line_gets_a_remedy(arguments: list[str], what: str, remedy: str) -> None:
    lines = told(*arguments).splitlines()
    assert what in lines[0] and lines[0].startswith("error: ")
    assert lines[1].startswith("  where:") and "heedful" in lines[1] and remedy in lines[2]


def test_a_folder_in_the_place_of_a_file_shows_its_files(tmp_path: Path) -> None:
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text("label\ttext\n")
    message = told("finetune", "classify", "--train", tmp_path)
    assert "is a directory" in message and "give one of its files: dev.tsv, train.tsv" in message


MODEL_VERBS = [
    ["embed", "NAME", "lines.txt", "-o", "v.npy"],
    ["similarity", "NAME", "a", "b"],
    ["fill", "NAME", "a [MASK]"],
    ["score", "NAME", "lines.txt"],
    ["vectors", "NAME", "-o", "v.txt"],
    ["predict", "NAME", "a text"],
    ["evaluate", "NAME", "lines.txt"],
    ["finetune", "classify", "--model", "NAME", "--train", "lines.txt", "-o", "run"],
    ["translate", "run", "NAME", "lines.txt"],
    ["translate", "score", "NAME", "lines.txt"],
    ["translate", "train", "--encoder", "NAME", "--train", "lines.txt", "-o", "run"],
    ["export", "NAME", "--to", "ctranslate2", "-o", "out"],
    ["new", "out", "--tokenizer", "NAME"],
    ["tokenizer", "show", "NAME", "a"],
    ["tokenizer", "extend", "NAME", "--words", "lines.txt", "-o", "out"],
    ["inspect", "lines.txt", "--model", "NAME"],
]


@pytest.mark.parametrize("verb", MODEL_VERBS, ids=lambda verb: " ".join(verb[:2]))
@pytest.mark.parametrize("name", ["bert-base-uncased", "google/bert_uncased_L-2_H-128_A-2"])
def test_a_name_instead_of_a_folder_is_told_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("a\tb\n")
    done = CliRunner().invoke(cli, [name if word == "NAME" else word for word in verb])
    error = done.exception
    assert isinstance(error, heedful.HeedfulError), done.output
    assert error.what == "there is no such folder" and error.where == name
    for part in ("nothing is downloaded", f"hf download {name}", f"/{name}`", "wheel"):
        assert part in str(error.remedy)


def test_python_says_the_same_and_a_path_is_not_taken_for_a_name(tmp_path: Path) -> None:
    with pytest.raises(heedful.HeedfulError, match="nothing is downloaded"):
        heedful.load("bert-base-uncased")
    with pytest.raises(heedful.HeedfulError, match="no such folder") as caught:
        heedful.load(tmp_path / "models" / "nowhere")
    assert "download" not in str(caught.value.remedy)
