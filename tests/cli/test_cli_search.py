"""`heedful search`: an index from files, queries, and what its user is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heedful.cli.main import cli
from heedful.errors import HeedfulError


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["search", *map(str, arguments)])


@pytest.fixture
def index(tiny_folder: Path, tmp_path: Path) -> Path:
    (tmp_path / "lines.txt").write_text("the cat\n\na dog\nthe cat\n", encoding="utf-8")
    done = invoke(tmp_path / "index", "--model", tiny_folder, "--add", tmp_path / "lines.txt")
    assert done.exit_code == 0, (done.output, done.exception)
    assert "2 lines added, 1 were there already, 1 blank ones passed over; the index has 2" in done.stderr
    return tmp_path / "index"


def test_lines_are_found_and_added_from_tables(index: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text('id,body\n1,"love, love"\n', encoding="utf-8")
    done = invoke(index, "the cat", "--add", tmp_path / "more.csv", "--text", "body", "--top", 2)
    assert done.exit_code == 0, done.exception
    query, first, _ = done.stdout.splitlines()
    assert query == "the cat" and "the cat" in first and first.split()[0] == "1.0000"
    found = json.loads(invoke(index, "love, love", "--json", "--top", 1).stdout)
    assert found["query"] == "love, love" and found["hits"][0]["text"] == "love, love"
    assert found["hits"][0]["source"].endswith("more.csv") and found["hits"][0]["line"] == 1


def test_what_is_missing_is_told(index: Path, tmp_path: Path) -> None:
    assert invoke(index).exit_code == 2
    assert invoke(index, "cat", "--pooling", "cls").exit_code == 2
    done = invoke(tmp_path / "none", "cat")
    assert isinstance(done.exception, HeedfulError) and "--add" in str(done.exception)
    done = invoke(tmp_path / "none", "--add", tmp_path / "lines.txt")
    assert isinstance(done.exception, HeedfulError) and "--model" in str(done.exception)
