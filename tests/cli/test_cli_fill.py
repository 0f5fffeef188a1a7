"""`heedful fill`."""

import json

import pytest
from click.testing import CliRunner

from heedful.cli.fill import command
from heedful.errors import HeedfulError


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_json_and_plain_output_tell_the_same(tiny_folder):
    asked = [tiny_folder, "the [MASK] sees 中国", "--pair", "[MASK]!", "--top", 3]
    told = run(*asked, "--json")
    assert told.exit_code == 0, told.output
    answer = json.loads(told.stdout)
    assert answer["text"] == "the [MASK] sees 中国" and answer["pair"] == "[MASK]!"
    assert [mask["position"] for mask in answer["masks"]] == [2, 7]

    lines = [line.split() for line in run(*asked).stdout.splitlines()]
    assert lines[0] == ["[MASK]", "1"] and lines[4] == ["[MASK]", "2"]
    words = [guess["word"] for mask in answer["masks"] for guess in mask["guesses"]]
    assert [word for _, word in lines[1:4] + lines[5:]] == words and len(words) == 6


def test_a_single_mask_needs_no_number(tiny_folder):
    assert len(run(tiny_folder, "the [MASK]").stdout.splitlines()) == 5


@pytest.mark.parametrize(("text", "message"), [("the cat", "no [MASK]"), ("[MASK] " * 600, "602 tokens")])
def test_refusals(tiny_folder, text, message):
    failed = run(tiny_folder, text)
    assert isinstance(failed.exception, HeedfulError) and message in str(failed.exception)
