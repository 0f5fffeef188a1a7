"""The flags of processors that are not this one, and what torch and oneDNN were told to leave alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from heedful.training import precision
from heedful.training.precision import resolved_precision, resume_remark, slow_bfloat16_warning
from heedful.training.processor import arithmetic_of, bfloat16_of, bfloat16_speed, speed_told

CAPS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")


class Pretended:
    """A processor to be."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch
        for name in CAPS:
            patch.delenv(name, raising=False)

    def be(self, machine: str, vectors: str, instructions: bool) -> None:
        self.patch.setattr("platform.machine", lambda: machine)
        self.patch.setattr("torch.backends.cpu.get_cpu_capability", lambda: vectors)
        self.patch.setattr("torch.cpu._is_avx512_bf16_supported", lambda: instructions)
        self.patch.setattr("torch.cpu._is_amx_tile_supported", lambda: False)
        self.patch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: instructions, raising=False)


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    return Pretended(monkeypatch)


@pytest.mark.parametrize(
    ("machine", "vectors", "instructions", "expected"),
    [
        ("x86_64", "AVX512", True, "bfloat16"),
        ("AMD64", "AVX512", True, "bfloat16"),
        ("x86_64", "AVX512", False, "float32"),
        ("x86_64", "AVX2", False, "float32"),
        ("x86_64", "AVX2", True, "float32"),  # as ATEN_CPU_CAPABILITY=avx2 makes it
        ("aarch64", "DEFAULT", True, "bfloat16"),
        ("arm64", "DEFAULT", False, "float32"),
    ],
)
def test_auto_goes_by_the_flags(
    processor: Pretended, machine: str, vectors: str, instructions: bool, expected: str
) -> None:
    processor.be(machine, vectors, instructions)
    resolved = resolved_precision("auto", "cpu")
    assert resolved.precision == expected and "bfloat16 instructions" in str(resolved)
    assert str(resolved).startswith(expected)


@pytest.mark.parametrize(
    ("cap", "there"),
    [("AVX2", False), ("avx512_core_vnni", False), ("AVX512_CORE_AMX", True), ("ALL", True), ("nonsense", True)],
)
@pytest.mark.parametrize("name", CAPS[:2])
def test_what_onednn_may_not_use_is_not_there(processor: Pretended, name: str, cap: str, there: bool) -> None:
    processor.be("x86_64", "AVX512", True)
    processor.patch.setenv(name, cap)
    found = bfloat16_of("cpu")
    assert found.there is there
    assert (f"{name}={cap.upper()}" in found.reason) is not there


def test_a_precision_that_is_asked_for_is_taken(processor: Pretended) -> None:
    processor.be("x86_64", "AVX2", False)
    assert resolved_precision("bfloat16", "cpu").precision == "bfloat16"
    processor.be("x86_64", "AVX512", True)
    assert resolved_precision("float32", "cpu").precision == "float32"


def test_a_resumed_run_keeps_its_precision_on_another_processor(processor: Pretended) -> None:
    processor.be("x86_64", "AVX2", False)
    assert resolved_precision("auto", "cpu", stored="bfloat16").precision == "bfloat16"
    assert resolved_precision("float32", "cpu", stored="bfloat16").precision == "float32"  # and is refused as a change


def test_bfloat16_without_instructions_is_warned_of_with_a_factor(processor: Pretended) -> None:
    processor.patch.setattr(precision, "bfloat16_speed", lambda: 0.02)
    processor.be("x86_64", "AVX512", True)
    assert slow_bfloat16_warning("cpu") is None
    processor.be("x86_64", "AVX2", False)
    assert "take 50.0 times as long as in float32" in (slow_bfloat16_warning("cpu") or "")
    processor.patch.setattr(precision, "bfloat16_speed", lambda: 1.5)
    assert slow_bfloat16_warning("cpu") is None


def test_a_device_nobody_knows_is_left_in_float32() -> None:
    assert resolved_precision("auto", "meta").precision == "float32"
    assert "may be slow" in (slow_bfloat16_warning("meta") or "")
    assert arithmetic_of("meta") == "meta"


def test_the_measurement_leaves_no_trace() -> None:
    before = torch.get_rng_state()
    assert bfloat16_speed() > 0
    assert torch.equal(before, torch.get_rng_state())
    assert speed_told(2.04) == "matmuls in bfloat16 are 2.0 times as fast as in float32"


def test_another_processor_is_told_of_when_a_run_is_resumed(processor: Pretended) -> None:
    processor.be("x86_64", "AVX512", True)
    good = arithmetic_of("cpu")
    processor.be("x86_64", "AVX2", False)
    poor = arithmetic_of("cpu")
    assert resume_remark("bfloat16", good, good) is None and resume_remark("bfloat16", "", poor) is None
    assert "emulates" in (resume_remark("bfloat16", good, poor) or "")
    for remark in (resume_remark("float32", good, poor), resume_remark("bfloat16", poor, good)):
        assert remark is not None and "another order" in remark and "not bit for bit" in remark


def test_fewer_vector_instructions_are_float32() -> None:
    """The environment as `make test` sets it for the tests marked `processor`, in a process of its own."""
    code = "from heedful.training.precision import resolved_precision as r; print(r('auto', 'cpu').precision)"
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "float32"
