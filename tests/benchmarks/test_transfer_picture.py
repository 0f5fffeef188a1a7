"""The picture of what pretraining is worth, on made-up numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

Script = Callable[[str], ModuleType]
SVG = "{http://www.w3.org/2000/svg}"


def made_up(script: Script) -> list[dict[str, Any]]:
    runs = []
    for run in script("finetune_experiments").TRANSFER.runs:
        _, rows, weights = run.name.rsplit(" ", 2)
        score = 0.5 + int(rows) / 40_000 + (0.1 if weights == "pretrained" else 0)
        runs.append({"run": run.name, "scores": {run.metrics[0]: score}})
    return runs


def drawn(script: Script, folder: Path, runs: list[dict[str, Any]]) -> ElementTree.Element:
    source = folder / "finetune_transfer.json"
    source.write_text(json.dumps({"runs": runs}), encoding="utf-8")
    picture = script("transfer_picture").draw(source)
    assert picture == folder / "finetune_transfer.svg"
    return ElementTree.fromstring(picture.read_text(encoding="utf-8"))


def texts(picture: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in picture.iter(f"{SVG}text")]


def test_a_panel_a_task_with_two_curves_each(script: Script, tmp_path: Path) -> None:
    picture = drawn(script, tmp_path, made_up(script))
    panels = picture.findall(f"{SVG}g")
    assert [texts(panel)[0] for panel in panels] == [
        "SST-2, accuracy", "MRPC, f1", "CoNLL, f1", "ChnSentiCorp, accuracy",
    ]  # fmt: skip
    assert len({panel.get("transform") for panel in panels}) == 4
    for panel in panels:
        assert {"pretrained 0.8", "random 0.7"} <= set(texts(panel))
        told = [title.text for title in panel.iter(f"{SVG}title")]
        assert told[1] == "training rows, at most 2,000\npretrained 0.65\nrandom 0.55" and len(told) == 3
    assert picture.get("viewBox", "").startswith("0 0 1080 ") and picture.find(f"{SVG}style") is not None


def test_what_is_not_measured_yet_is_left_out(script: Script, tmp_path: Path) -> None:
    runs = [run for run in made_up(script) if not run["run"].startswith(("MRPC", "CoNLL"))]
    runs[-1]["scores"] = {"accuracy": None}
    picture = drawn(script, tmp_path, runs)
    panels = picture.findall(f"{SVG}g")
    assert [texts(panel)[0] for panel in panels] == ["SST-2, accuracy", "ChnSentiCorp, accuracy"]
    assert "random 0.55" in texts(panels[1])


def test_what_is_no_chart_is_refused(script: Script) -> None:
    with pytest.raises(ValueError, match="not a chart"):
        script("standalone_svg").standalone('<p class="none">loss: no finite values</p>')


def test_a_chart_by_itself_keeps_its_size_and_label(script: Script) -> None:
    rows = [
        {"step": 1, "losses": {"mlm": 5.0}},
        {"step": 9, "evaluation": {"mlm_loss": 4.0, "unigram_loss": 6.0, "bigram_loss": 5.5}},
    ]
    picture = ElementTree.fromstring(script("pretrain_curves").picture("Wiki & more", rows))
    assert picture.get("viewBox") == "0 0 540 270" and "Wiki & more" in picture.get("aria-label", "")
    assert {"held-out 4", "unigram 6", "bigram 5.5"} <= set(texts(picture))
