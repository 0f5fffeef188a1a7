"""The command line as a whole: quick to start, helpful, and plain about errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from heedful.cli.main import VERBS, cli, main

SLOW = ("torch", "numpy", "tokenizers", "rich", "safetensors", "transformers", "jieba")
LOADED = f"import json, sys; print(json.dumps([m for m in {SLOW!r} if m in sys.modules]))"


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120)


def test_importing_the_package_imports_nothing_slow() -> None:
    found = run_python(f"import heedful; {LOADED}")
    assert json.loads(found.stdout) == [], found.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["embed", "--help"], ["--version"]])
def test_help_imports_nothing_slow(arguments: list[str]) -> None:
    program = f"import atexit\n@atexit.register\ndef tell():\n    {LOADED}\nfrom heedful.cli.main import main; main()"
    found = run_python(program, *arguments)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout.splitlines()[-1]) == []


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    shown = CliRunner().invoke(cli, [verb, "--help"])
    assert shown.exit_code == 0
    command = cli.get_command(None, verb)  # type: ignore[arg-type]
    subverbs = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else []
    pages = [CliRunner().invoke(cli, [verb, name, "--help"]).output for name in subverbs] or [shown.output]
    assert all("Example" in page and f"heedful {verb}" in page for page in pages)


def test_pretraining_names_every_family() -> None:
    from heedful.checkpoints.families import _OURS
    from heedful.runs.pretraining.settings import FAMILIES

    assert FAMILIES.replace(" or ", ", ").split(", ") == [family.model_type for family in _OURS if family.objectives]
    assert all(name in CliRunner().invoke(cli, ["pretrain", "--help"]).output for name in ("gpt2", "word2vec", "elmo"))


def test_the_overview_names_every_verb() -> None:
    shown = CliRunner().invoke(cli, ["--help"]).output
    assert all(f"\n  {verb} " in shown for verb in VERBS)


def test_a_value_that_is_given_twice_is_refused_with_both_values() -> None:
    def error(line: str) -> str:
        return str(CliRunner().invoke(cli, line.split()).exception)

    twice = error("finetune classify --model m --train t -o o --lr 1e-5 --learning-rate 5e-5")
    assert "--learning-rate is given 2 times: 1e-5 and 5e-5" in twice and "give it once" in twice
    assert "--vocab-size is given 2 times: 7 and 8" in error("tokenizer train a -o t --vocab-size=7 --vocab-size 8")
    assert "-o" not in error("embed m a.txt -o x.npy --normalize --normalize")  # a switch is on or off
    assert "2 times" not in error("translate train --set a=1 --set b=2 -o x")  # and some are lists


@pytest.mark.parametrize("option", ["--peek", "--limit"])
def test_none_of_the_examples_is_no_number_to_ask_for(option: str) -> None:
    shown = CliRunner().invoke(cli, ["finetune", "classify", "--model", "m", "--train", "t", "-o", "o", option, "0"])
    assert shown.exit_code == 2 and f"Invalid value for '{option}'" in shown.output


def heedful(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "heedful", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_user_errors_are_plain_and_exit_with_2(tmp_path: Path) -> None:
    missing = heedful("similarity", tmp_path / "nowhere", "a", "b")
    assert missing.returncode == 2 and missing.stdout == ""
    what, where, remedy = missing.stderr.splitlines()
    assert what.startswith("error: ") and "where:" in where and "nowhere" in where and "remedy:" in remedy
    unknown = heedful("embbed")
    assert unknown.returncode == 2 and "Traceback" not in unknown.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = "import sys; from heedful.cli.main import main; sys.stdout.close = lambda: None; main()"
    command = [sys.executable, "-c", program, "--help"]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None and writer.stderr is not None
    writer.stdout.close()
    assert b"Traceback" not in writer.stderr.read()
    writer.stderr.close()
    writer.wait(timeout=60)


def test_called_by_a_program_errors_name_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["scheduler.py"])
    with pytest.raises(SystemExit) as ended:
        main(["nope"])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and "see heedful --help" in said and "scheduler" not in said
