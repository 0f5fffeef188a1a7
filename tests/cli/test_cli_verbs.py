"""The short verbs: similarity, vectors, new, doctor."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import transformers
from click.testing import CliRunner, Result

import heedful
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_similarity_prints_the_matrix(tiny_folder: Path, tiny: Embedder) -> None:
    expected = tiny.similarity(["cat", "中国", "the dog"], layers=[0], pooling="max")
    arguments = ["similarity", tiny_folder, "cat", "中国", "the dog", "--layers", "0", "--pooling", "max"]
    rows = [line.split()[-3:] for line in run(*arguments).stdout.splitlines()[1:]]
    np.testing.assert_allclose(np.array(rows, dtype=float), expected, atol=1e-4)
    found = json.loads(run(*arguments, "--json").stdout)
    assert found["texts"] == ["cat", "中国", "the dog"]
    np.testing.assert_allclose(found["cosine"], expected, atol=1e-5)


def test_similarity_wants_two_texts(tiny_folder: Path) -> None:
    assert run("similarity", tiny_folder, "cat").exit_code == 2


def test_vectors_in_both_formats(tiny_folder: Path, tiny: Embedder, tmp_path: Path) -> None:
    for name in ("v.txt", "v.npy"):
        result = run("vectors", tiny_folder, "-o", tmp_path / name)
        assert result.exit_code == 0 and f"{tiny.tokenizer.vocab_size} pieces" in result.stderr
    as_text = np.loadtxt(tmp_path / "v.txt", skiprows=1, usecols=range(1, 33), encoding="utf-8", comments=None)
    np.testing.assert_allclose(as_text, np.load(tmp_path / "v.npy"), rtol=1e-5)


def test_new_writes_a_model_that_loads_here_and_there(tiny_folder: Path, tmp_path: Path) -> None:
    result = run("new", tmp_path / "a", "--tokenizer", tiny_folder, "--seed", 7)
    assert result.exit_code == 0, result.output
    assert "bert tiny" in result.stderr
    assert np.asarray(heedful.load(tmp_path / "a").embed(["the cat"])).shape == (1, 128)
    _, info = transformers.BertForPreTraining.from_pretrained(tmp_path / "a", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    weights = (tmp_path / "a" / "model.safetensors").read_bytes()
    for seed, same in ((7, True), (8, False)):
        run("new", tmp_path / str(seed), "--tokenizer", tiny_folder, "--seed", seed)
        assert ((tmp_path / str(seed) / "model.safetensors").read_bytes() == weights) is same


def test_new_does_not_overwrite(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    assert isinstance(run("new", tmp_path, "--tokenizer", tiny_folder).exception, HeedfulError)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_new_overwrites_a_model_when_told(tiny_folder: Path, tmp_path: Path) -> None:
    arguments = ["new", tmp_path / "a", "--tokenizer", tiny_folder]
    run(*arguments)
    before = (tmp_path / "a" / "model.safetensors").read_bytes()
    assert isinstance(run(*arguments, "--seed", 1).exception, HeedfulError)
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == before
    assert run(*arguments, "--seed", 1, "--overwrite").exit_code == 0
    assert (tmp_path / "a" / "model.safetensors").read_bytes() != before


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_new_refuses_a_seed_out_of_range(tiny_folder: Path, tmp_path: Path, seed: int) -> None:
    assert run("new", tmp_path / "a", "--tokenizer", tiny_folder, f"--seed={seed}").exit_code == 2


def test_new_knows_its_sizes(tiny_folder: Path, tmp_path: Path) -> None:
    error = run("new", tmp_path / "a", "--tokenizer", tiny_folder, "--size", "gigantic").exception
    assert isinstance(error, HeedfulError) and "medium" in str(error)


def test_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.inference import machine

    monkeypatch.setattr(machine, "_tokens_per_second", lambda model: 5.0)
    found = json.loads(run("doctor", "--json").stdout)
    assert {"python", "torch", "cores", "memory", "disk", "threads"} <= set(found)
    assert found["heedful"] == heedful.__version__ and "work best" in found["threads"]
    assert " times as " in found["bfloat16"] and "0.0 times" not in found["bfloat16"]
    assert re.search("^(float32|bfloat16): .*instructions", found["precision"]) and found["processor"]
    shown = run("doctor").stdout
    assert all(name in shown for name in found)


def test_doctor_where_the_system_tells_less(monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.inference import machine

    monkeypatch.setattr(machine, "_tokens_per_second", lambda model: 5.0)
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.delattr("os.getloadavg")
    found = json.loads(run("doctor", "--json").stdout)
    assert found["load"] == "unknown" and "usable" in found["cores"]


@pytest.mark.parametrize(("most", "counts"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])])
def test_doctor_tries_all_threads_too(most: int, counts: list[int]) -> None:
    from heedful.inference.machine import _thread_counts

    assert _thread_counts(most) == counts
