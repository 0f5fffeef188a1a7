"""What a training run shows where there is no terminal: plain lines, each whole."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from heedful.cli.training_display import TrainingDisplay
from heedful.training.events import Evaluated, Note, Progress

LONG = "a note of many words, " * 12


def test_lines_of_a_log_stay_whole(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    losses = {f"loss_{number}": 1.5 for number in range(12)}
    with TrainingDisplay() as display:
        display.show(Note(LONG))
        display.show(Evaluated(7, losses, best=True, examples=[{"text": LONG, "guesses": [["[cat]", 0.41]]}]))
        display.show(Progress(9, 9, losses, 1e-3, 1.0, 1000.0, 0.2, 0.0))
    note, evaluated, example, step = capsys.readouterr().err.splitlines()
    assert note == LONG
    assert evaluated.startswith("after step 7: loss_0 1.5") and evaluated.endswith("loss_11 1.5  (best so far)")
    assert example == f"    text: {LONG}  |  guesses: [cat] 41%"
    assert step.startswith("step 9/9  loss_0 1.500") and step.endswith("left")


def test_a_terminal_wraps_at_its_width(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    display = TrainingDisplay()
    display.show(Note(LONG))
    assert max(map(len, capsys.readouterr().err.splitlines())) <= 80


CLOSED = """
from heedful.cli.progress import progress_bar
from heedful.cli.training_display import TrainingDisplay
from heedful.training.events import Note
with TrainingDisplay() as display:
    for _ in range(3):
        display.show(Note("something"))
with progress_bar("work", 2, "lines") as advance:
    advance(1, 1)
print("done")
"""


def test_where_nobody_reads_on_the_work_goes_on() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for terminal in ("", "1"):
        environment = {**os.environ, "FORCE_COLOR": terminal}
        done = subprocess.run(
            [sys.executable, "-c", CLOSED], stdout=subprocess.PIPE, stderr=writing, env=environment, text=True
        )
        assert (done.returncode, done.stdout) == (0, "done\n")
    os.close(writing)
