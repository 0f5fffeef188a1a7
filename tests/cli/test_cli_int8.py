"""The verbs in int8, and `heedful convert --precision int8`: the same as from Python, and what is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import heedful
from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import load_for_task, save_for_task
from heedful.cli.main import cli
from heedful.config import to_mapping
from heedful.inference import int8
from heedful.inference.load import load_translator
from heedful.nn.packed_int8 import Int8Instructions
from heedful.serving.catalogue import read_catalogue
from heedful.serving.settings import ServeSettings
from heedful.tasks.classify import Classify
from tests.gpt_folder import byte_level_tokenizer, random_gpt

LINES = ["the cat sees the dog", "我爱北京", "love"]
INT8 = ("--precision", "int8", "--force")


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


@pytest.fixture
def plain_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8, "int8_instructions", lambda: Int8Instructions(False, "no dot product here"))


def test_embed_says_what_int8_costs_on_the_users_own_texts(tiny_folder: Path, lines: Path, tmp_path: Path) -> None:
    done = run("embed", tiny_folder, lines, "-o", tmp_path / "a.npy", *INT8)
    assert "note: int8 for 12 of 12 matrices; cosine with float32 on 3 texts: mean " in done.stderr
    expected = heedful.load(tiny_folder, precision="int8", force=True, texts=LINES).embed(LINES)
    assert np.allclose(np.load(tmp_path / "a.npy"), expected, atol=1e-6)
    again = CliRunner().invoke(cli, ["embed", str(tiny_folder), str(lines), "-o", str(tmp_path / "a.npy")])
    assert "other settings" in str(again.exception)  # those vectors are in another precision


@pytest.mark.usefixtures("plain_processor")
def test_embed_falls_back_to_float32_and_says_so(tiny_folder: Path, lines: Path, tmp_path: Path) -> None:
    done = run("embed", tiny_folder, lines, "-o", tmp_path / "a.npy", "--precision", "int8")
    assert "warning: no dot product here, so int8 would hardly pay: float32 is used" in done.stderr
    assert np.array_equal(np.load(tmp_path / "a.npy"), heedful.load(tiny_folder, "cpu").embed(LINES))
    assert "no dot product here" in int8.int8_told()


def test_convert_tells_size_and_accuracy(tiny_folder: Path, lines: Path, tmp_path: Path) -> None:
    done = run("convert", tiny_folder, "-o", tmp_path / "small", "--precision", "int8", "--texts", lines)
    assert "MB of weights, 0." in done.stderr
    assert "cosine with float32 on 3 texts" in done.stderr
    told = run("embed", tmp_path / "small", lines, "-o", tmp_path / "a.npy", "-v", *INT8).stderr
    assert told.count("int8 for 12 of 12 matrices") == 2  # what is stored, and what computes
    same = run("verify", tiny_folder, tmp_path / "small", lines, "--tolerance", 1)
    assert "the second is stored in int8 for 12 of 12 matrices" in same.output and "the first is" not in same.output
    run("convert", tmp_path / "small", "-o", tmp_path / "float")
    assert read_folder(tmp_path / "float").int8 is None
    refused = CliRunner().invoke(cli, ["convert", str(tiny_folder), "-o", str(tmp_path / "x"), "--texts", str(lines)])
    assert refused.exit_code == 2
    assert "--texts goes with --precision int8" in refused.output
    assert CliRunner().invoke(cli, ["convert", str(tiny_folder), "-o", str(tmp_path / "small")]).exit_code != 0


def test_predict_and_evaluate(tiny_folder: Path, tmp_path: Path) -> None:
    folder, task = read_folder(tiny_folder), Classify(labels=("a", "b"))
    model, settings = load_for_task(folder, task.model, seed=0), {"task": task.name, **to_mapping(task)}
    save_for_task(
        model, tmp_path / "m", folder.tokenizer, task=settings, architecture=task.architecture, labels=task.labels
    )
    done = run("predict", tmp_path / "m", "the cat", *INT8)
    assert '"label"' in done.stdout
    assert "note: int8 for 12 of 12 matrices" in done.stderr
    (tmp_path / "dev.tsv").write_text("label\ttext\na\tthe cat\nb\tlove\n", encoding="utf-8")
    done = run("evaluate", tmp_path / "m", tmp_path / "dev.tsv", "--rounds", 0, *INT8)
    assert "note: int8 for 12 of 12 matrices" in done.stderr


def test_generate(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer()
    gpt = random_gpt(tokenizer.vocab_size, n_embd=32, n_layer=1, n_head=4, n_positions=64)
    save_model(gpt, tmp_path / "gpt", tokenizer)
    done = run("generate", tmp_path / "gpt", "the cat", "--max-tokens", 5, *INT8)
    expected = heedful.load(tmp_path / "gpt", precision="int8", force=True).generate("the cat", max_tokens=5)
    assert done.stdout == f"the cat{expected}\n"
    assert "note: int8 for 5 of 5 matrices" in done.stderr


def test_translate(tiny_translators: dict[str, Path], lines: Path, tmp_path: Path) -> None:
    folder = tiny_translators["transformer"]
    done = run("translate", "run", folder, lines, "--max-length", 6, "-o", tmp_path / "out.txt", *INT8)
    assert "note: int8 for 23 of 23 matrices; cosine with float32 on 3 texts" in done.stderr
    expected = load_translator(folder, precision="int8", force=True, texts=LINES).translate(LINES, max_length=6)
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").splitlines() == expected
    done = run("convert", folder, "-o", tmp_path / "small", "--precision", "int8", "--texts", lines)
    done = run("translate", "run", tmp_path / "small", lines, "--max-length", 6, *INT8)
    assert done.stdout.splitlines() == expected


def test_serve_computes_in_int8(tiny_folder: Path, tiny_translators: dict[str, Path]) -> None:
    folders = {"tiny": str(tiny_folder), "en-zh": str(tiny_translators["transformer"])}
    models = read_catalogue(folders, ServeSettings(precision="int8", force=True)).models
    assert [one.model.int8 is not None for one in models.values()] == [True, True]
    assert read_catalogue({"tiny": str(tiny_folder)}, ServeSettings()).models["tiny"].model.int8 is None
