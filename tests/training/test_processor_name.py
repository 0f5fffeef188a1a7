"""The processor's name and instructions, and where they are told: --version, reports and model cards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from heedful.cli.main import cli
from heedful.training import processor_name as told
from heedful.training.processor import computed_on
from heedful.views.report import write_report

X86 = (
    "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: Some CPU: 9\n"
    "flags\t\t: fpu avx2 avx512f avx512_vnni avx512_bf16 amx_bf16\n"
)
ARM = "processor\t: 0\nFeatures\t: fp asimd sve bf16\n"


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        (X86, "Some CPU: 9", ["AVX2", "AVX-512", "VNNI", "bfloat16", "AMX"]),
        (X86.replace("avx512f avx512_vnni avx512_bf16 amx_bf16", ""), "Some CPU: 9", ["AVX2"]),
        (ARM, None, ["NEON", "SVE", "bfloat16"]),
        ("", None, []),
    ],
)
def test_what_the_system_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str | None, found: list[str]
) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(told, "_CPUINFO", tmp_path / "cpuinfo")
    assert told.instructions() == found and told.processor_name() == (name or told.processor_name())
    assert told.generation() == ("family 25, model 17" if name else "")
    lines = CliRunner().invoke(cli, ["--version"]).output.splitlines()
    assert lines[0].startswith("heedful, version ") and (name or "processor: ") in lines[1]
    assert lines[2].startswith("precision: bfloat16" if "bfloat16" in found else "precision: float32")


def test_the_report_names_processor_and_precision(tmp_path: Path) -> None:
    place = computed_on("cpu", "float32")
    assert place == {"processor": told.processor_name(), "precision": "float32"}
    (tmp_path / "timing.json").write_text(json.dumps({"processor": "A <fast> one", "precision": "bfloat16"}))
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "A &lt;fast&gt; one" in page and "bfloat16" in page
