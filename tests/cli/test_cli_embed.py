"""`heedful embed` as a user runs it."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from safetensors.numpy import load_file

from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder

TEXTS = ["the cat", "", "我爱北京，unaffordable 🙂", "a b c d e"]


def run(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["embed", *map(str, arguments)], input=stdin)


def succeed(*arguments: object, stdin: bytes | None = None) -> Result:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result


def failure(*arguments: object, stdin: bytes | None = None) -> HeedfulError:
    error = run(*arguments, stdin=stdin).exception
    assert isinstance(error, HeedfulError), repr(error)
    return error


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "lines.txt"
    file.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return file


def test_npy(tiny_folder: Path, tiny: Embedder, lines: Path, tmp_path: Path) -> None:
    told = succeed(tiny_folder, lines, "-o", tmp_path / "x.npy").stderr
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), tiny.embed(TEXTS), atol=2e-5)
    assert "4 texts" in told and "tokens/s" in told


def test_all_options(tiny_folder: Path, tiny: Embedder, lines: Path, tmp_path: Path) -> None:
    options = ["--layers", "-1,-2", "--combine", "mean", "--pooling", "mean-max", "--unit", "word", "--normalize"]
    succeed(tiny_folder, lines, "-o", tmp_path / "x", *options, "--max-length", 6, "--format", "safetensors")
    with pytest.warns(UserWarning, match="cut"):
        expected = tiny.embed(TEXTS, [-1, -2], "mean", "mean-max", "word", True, 6)
    found = load_file(tmp_path / "x")
    np.testing.assert_allclose(found["vectors"], np.concatenate(expected), atol=1e-5)
    assert found["lengths"].tolist() == [len(v) for v in expected]


def test_jsonl_is_tokens_by_itself(tiny_folder: Path, tiny: Embedder, lines: Path, tmp_path: Path) -> None:
    succeed(tiny_folder, lines, "-o", tmp_path / "x.jsonl", "--layers", "-1,-2")
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [[feature["layers"][1]["values"] for feature in row["features"]] for row in rows]
    for values, vectors in zip(found, tiny.embed(TEXTS, layers=[-2], unit="token"), strict=True):
        np.testing.assert_allclose(values, vectors, atol=1e-5)


def test_every_kind_of_input_gives_the_same_file(tiny_folder: Path, lines: Path, tmp_path: Path) -> None:
    plain = lines.read_bytes()
    objects = "".join(json.dumps({"body": text}) + "\n" for text in TEXTS).encode()
    (tmp_path / "lines.gz").write_bytes(gzip.compress(plain))
    (tmp_path / "lines.jsonl").write_bytes(objects)
    (tmp_path / "lines.jsonl.gz").write_bytes(gzip.compress(objects))
    succeed(tiny_folder, lines, "-o", tmp_path / "expected.npy")
    requests = [["lines.gz"], ["lines.jsonl", "--field", "body"], ["lines.jsonl.gz", "--field", "body"]]
    for number, (name, *options) in enumerate(requests):
        succeed(tiny_folder, tmp_path / name, "-o", tmp_path / f"{number}.npy", *options)
    succeed(tiny_folder, "-", "-o", tmp_path / "3.npy", stdin=plain)
    expected = (tmp_path / "expected.npy").read_bytes()
    assert all((tmp_path / f"{number}.npy").read_bytes() == expected for number in range(4))


def test_truncation_is_counted_and_told_or_refused(tiny_folder: Path, lines: Path, tmp_path: Path) -> None:
    told = succeed(tiny_folder, lines, "-o", tmp_path / "x.npy", "--max-length", 5).stderr
    assert "2 texts were longer than 5 tokens" in told
    error = failure(tiny_folder, lines, "-o", tmp_path / "y.npy", "--max-length", 5, "--truncate", "error")
    assert "text 3" in str(error) and not (tmp_path / "y.npy").exists()


def test_bad_input_is_told_with_file_and_line(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "rows.jsonl").write_text('{"text": "a"}\n{"body": "b"}\n')
    (tmp_path / "torn.gz").write_bytes(gzip.compress(b"text\n" * 100)[:-10])
    place = tmp_path / "out" / "x.npy"
    assert failure(tiny_folder, tmp_path / "latin.txt", "-o", place).where == f"{tmp_path / 'latin.txt'}:2"
    assert "no texts" in str(failure(tiny_folder, tmp_path / "empty.txt", "-o", place))
    assert failure(tiny_folder, tmp_path / "rows.jsonl", "-o", place).where == f"{tmp_path / 'rows.jsonl'}:2"
    assert "gzip" in str(failure(tiny_folder, tmp_path / "torn.gz", "-o", place))
    assert "cannot be read" in str(failure(tiny_folder, tmp_path / "missing.txt", "-o", place))
    assert failure(tiny_folder, "-", "-o", place, stdin=b"a\n\xff\n").where == "standard input:2"
    assert not place.exists()


def test_a_missing_model_is_told(tmp_path: Path, lines: Path) -> None:
    assert "no such folder" in str(failure(tmp_path / "nothing", lines, "-o", tmp_path / "x.npy"))
    assert "config.json" in str(failure(tmp_path, lines, "-o", tmp_path / "x.npy"))


@pytest.mark.parametrize("option", [["--layers", "one"], ["--max-length", "0"], ["--layers", ""]])
def test_options_that_make_no_sense_are_usage_errors(tiny_folder: Path, lines: Path, option: list[str]) -> None:
    assert run(tiny_folder, lines, "-o", "x.npy", *option).exit_code == 2


# The real command in a process of its own, with a commit after each chunk and trouble on the way.
KILLED = """
import os, signal, sys
from heedful.cli.main import main
from heedful.inference import vector_file
vector_file.COMMIT_EVERY = -1.0
append, calls = vector_file.VectorFile.append, []
def kill_at_the_third(self, *arguments):
    append(self, *arguments)
    calls.append(1)
    if len(calls) == 3:
        self._rows.flush()
        os.kill(os.getpid(), signal.SIGKILL)
vector_file.VectorFile.append = kill_at_the_third
main()
"""
FULL_DISK = """
import resource
from heedful.cli.main import main
from heedful.inference import vector_file
vector_file.COMMIT_EVERY = -1.0
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
main()
"""


def in_a_process(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, "embed", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def many(sentences: Callable[[int], list[str]], tmp_path: Path) -> Path:
    file = tmp_path / "many.txt"
    file.write_text("".join(f"{text}\n" for text in sentences(4 * 1024 + 3)), encoding="utf-8")
    return file


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_killed_run_is_continued_to_the_same_bytes(tiny_folder: Path, many: Path, tmp_path: Path) -> None:
    killed = in_a_process(KILLED, tiny_folder, many, "-o", tmp_path / "x.npy")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "x.npy").exists()
    error = failure(tiny_folder, many, "-o", tmp_path / "x.npy", "--normalize")
    assert "other settings" in str(error) and "--restart" in str(error)
    told = succeed(tiny_folder, many, "-o", tmp_path / "x.npy").stderr
    assert "continued after 2,048 texts" in told
    succeed(tiny_folder, many, "-o", tmp_path / "whole.npy")
    assert (tmp_path / "x.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert not list(tmp_path.glob("*partial*"))


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals: they enforce a limit on the size of files")
def test_a_full_disk_is_told_and_what_is_done_is_kept(tiny_folder: Path, many: Path, tmp_path: Path) -> None:
    full = in_a_process(FULL_DISK, tiny_folder, many, "-o", tmp_path / "x.npy")
    assert full.returncode == 2 and "Traceback" not in full.stderr
    assert "error: cannot write: File too large" in full.stderr and "remedy:" in full.stderr
    assert not (tmp_path / "x.npy").exists()
    assert "continued after 2,048 texts" in succeed(tiny_folder, many, "-o", tmp_path / "x.npy").stderr


MESSY = 'id,body,label\n1,"the cat, and\nthe dog",a\n2,,b\n3,"he said ""no""",a\n'


def test_a_table_gives_a_vector_for_each_row(tiny_folder: Path, tiny: Embedder, tmp_path: Path) -> None:
    texts = ["the cat, and\nthe dog", "", 'he said "no"']
    table = tmp_path / "a.csv.gz"
    table.write_bytes(gzip.compress(MESSY.encode()))
    told = succeed(tiny_folder, table, "-o", tmp_path / "a.npy").stderr  # `body` is a usual name of a text
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), tiny.embed(texts), atol=2e-5)
    assert "3 texts" in told and "1 of 3 texts are blank" in told
    (tmp_path / "b.tsv").write_text("label\twords\nx\tthe cat\ny\ta dog\n")
    succeed(tiny_folder, tmp_path / "b.tsv", "--text", "words", "-o", tmp_path / "b.npy")
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), tiny.embed(["the cat", "a dog"]), atol=2e-5)
    assert "words" in failure(tiny_folder, tmp_path / "b.tsv", "-o", tmp_path / "c.npy").what
    (tmp_path / "b.tsv").write_text("label\twords\nx\tthe cat\ny\ta dog\ttoo much\n")
    assert "1 rows" in failure(tiny_folder, tmp_path / "b.tsv", "--text", "words", "-o", tmp_path / "d.npy").what


def test_what_may_not_be_meant_is_told(tiny_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("1\tthe cat\n2\ta dog\n")
    assert "a.txt looks like a table (.tsv)" in succeed(tiny_folder, file, "-o", tmp_path / "a.npy").stderr
    told = succeed(tiny_folder, "-", "-o", tmp_path / "b.npy", stdin=MESSY.replace("and\n", "").encode()).stderr
    assert "standard input looks like a table (.csv)" in told
    file.write_bytes(b"the cat\na\0dog\0\nthe\0\n")
    told = succeed(tiny_folder, file, "-o", tmp_path / "c.npy").stderr
    assert "3 zero bytes (NUL) in" in told and "the first in line 2" in told and ".py:" not in told


def test_a_finished_file_is_replaced_only_when_told_to(tiny_folder: Path, lines: Path, tmp_path: Path) -> None:
    output, other = tmp_path / "x.npy", tmp_path / "three.txt"
    other.write_text("one\ntwo\nthree\n")
    succeed(tiny_folder, lines, "-o", output)
    before = output.read_bytes()
    assert "there already from the same input" in succeed(tiny_folder, lines, "-o", output).stderr
    assert "another input (4 texts)" in failure(tiny_folder, other, "-o", output).what
    refused = failure(tiny_folder, lines, "-o", output, "--normalize")
    assert "other settings" in refused.what and "--overwrite" in str(refused.remedy)
    assert output.read_bytes() == before and not list(tmp_path.glob("*.partial*"))
    succeed(tiny_folder, other, "-o", output, "--overwrite")
    assert len(np.load(output)) == 3
    np.save(output, np.zeros((9, 9)))  # what somebody else has put there is not known to us
    assert failure(tiny_folder, other, "-o", output).what == "a file is there already"
