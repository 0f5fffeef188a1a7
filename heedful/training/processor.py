"""What the processor can do in bfloat16, by its flags and not by a measurement, which depends on the machine's mood.

Instructions that multiply bfloat16 numbers are AVX512-BF16 and AMX on x86 and BF16 on ARM. A processor without them
computes in bfloat16 too, but by way of float32, and slowly. Instructions that torch or oneDNN were told not to use
(ATEN_CPU_CAPABILITY, ONEDNN_MAX_CPU_ISA) count as not there.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.training.processor_name import processor_name

_X86 = ("x86_64", "amd64", "i386", "i686")
_CAPS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
_WITHOUT_BFLOAT16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI")


@dataclass(frozen=True)
class Bfloat16:
    """Whether a device has instructions for bfloat16, and how that is known."""

    there: bool
    reason: str


def bfloat16_of(device: str) -> Bfloat16:
    """Whether a device such as cpu or cuda:0 multiplies in bfloat16 by instructions of its own."""
    kind = torch.device(device).type
    if kind == "cpu":
        return _of_x86() if platform.machine().lower() in _X86 else _of_others()
    if kind == "cuda":
        with torch.cuda.device(device):
            name, there = torch.cuda.get_device_name(), torch.cuda.is_bf16_supported(including_emulation=False)
        return Bfloat16(there, f"{name} has {'' if there else 'no '}bfloat16 instructions")
    return Bfloat16(False, f"it is not known whether {kind} has bfloat16 instructions")


def arithmetic_of(device: str) -> str:
    """What decides how a device rounds its sums: where two runs differ in it, they differ in their last bits."""
    kind = torch.device(device).type
    if kind == "cuda":
        return torch.cuda.get_device_name(device)
    if kind != "cpu":
        return kind
    with_bfloat16 = " with bfloat16" if bfloat16_of(device).there else ""
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}{with_bfloat16}"


def computed_on(device: str, precision: str) -> dict[str, str]:
    """What a run is computed on and in which precision, for its reports."""
    kind = torch.device(device).type
    name = torch.cuda.get_device_name(device) if kind == "cuda" else processor_name() if kind == "cpu" else kind
    return {"processor": name, "precision": precision}


def told_place(device: str, precision: str) -> str:
    """The same in words, for a model card."""
    place = computed_on(device, precision)
    return f"on {place['processor']}, in {place['precision']}"


def bfloat16_speed() -> float:
    """How many times as fast as in float32 the processor's matmul in bfloat16 is, by a short measurement."""
    x, weights = torch.ones(128, 512), torch.ones(512, 512)
    exact, rounded = (min(_seconds(x.to(d), weights.to(d)) for _ in range(3)) for d in (torch.float32, torch.bfloat16))
    return exact / rounded


def speed_told(speed: float) -> str:
    """A speed in bfloat16 beside float32, for people."""
    by = f"are {speed:.1f} times as fast" if speed >= 1 else f"take {1 / speed:.1f} times as long"
    return f"matmuls in bfloat16 {by} as in float32"


def _of_x86() -> Bfloat16:
    vectors = torch.backends.cpu.get_cpu_capability()
    if not (torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()):
        return Bfloat16(False, f"this processor has no bfloat16 instructions (torch uses {vectors})")
    if vectors in ("DEFAULT", "NO AVX", "AVX2"):
        return Bfloat16(False, f"torch was told to use {vectors}, which has no bfloat16 instructions")
    for name in _CAPS:
        if (asked := os.environ.get(name, "").upper()) in _WITHOUT_BFLOAT16:
            return Bfloat16(False, f"{name}={asked} keeps oneDNN from the processor's bfloat16 instructions")
    return Bfloat16(True, "this processor has bfloat16 instructions")


def _of_others() -> Bfloat16:
    """On ARM torch's oneDNN knows; a torch without it has no use for such instructions."""
    there = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    no = "has" if there else "or this torch has no"
    return Bfloat16(there, f"this processor {no} bfloat16 instructions")


def _seconds(x: Tensor, weights: Tensor) -> float:
    start = time.perf_counter()
    for _ in range(5):
        x @ weights
    return time.perf_counter() - start
