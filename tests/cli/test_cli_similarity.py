"""`heedful similarity` shows any text as it is, in tables of any size."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from heedful.cli.similarity import command


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def test_markup_and_emoji_codes_are_plain_text(tiny_folder: Path) -> None:
    shown = run(tiny_folder, "path [/usr/bin] x", "a [note] :smile:").output
    assert "path [/usr/bin] x" in shown
    assert "a [note] :smile:" in shown


def test_many_texts_are_shown_whole(tiny_folder: Path) -> None:
    shown = run(tiny_folder, *["the cat"] * 30).output
    assert "…" not in shown
    assert shown.count("1.0000") == 900


def test_json(tiny_folder: Path) -> None:
    told = json.loads(run(tiny_folder, "the cat", "the dog", "--json").stdout)
    assert told["cosine"][0][0] == 1.0
    assert told["texts"] == ["the cat", "the dog"]


def test_a_cut_text_is_told_plainly(tiny_folder: Path) -> None:
    done = run(tiny_folder, "cat " * 600, "dog")
    assert "warning: 1 of 2 texts were longer than 512 tokens" in done.stderr


def test_words_that_the_model_does_not_know_are_told(tiny_folder: Path) -> None:
    done = run(tiny_folder, "the Łódź cat", "the dog, Łódź", "Ж")
    assert "warning: the model does not know Łódź, Ж: " in done.stderr
    assert not run(tiny_folder, "the cat", "the dog").stderr
