"""What the processor is called and which vector instructions it has, by what the system tells; no torch here."""

from __future__ import annotations

import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
# As Linux names them, on x86 and on ARM, and as people do.
_INSTRUCTIONS = {
    **{"avx2": "AVX2", "avx512f": "AVX-512", "avx512_vnni": "VNNI", "avx_vnni": "VNNI"},
    **{"avx512_bf16": "bfloat16", "amx_bf16": "AMX", "asimd": "NEON", "sve": "SVE", "bf16": "bfloat16"},
}


def processor_name() -> str:
    """The processor's own name, where the system tells it."""
    return _told("model name") or platform.processor() or platform.machine() or "unknown"


def generation() -> str:
    """Which of the processors of one name it is, as x86 numbers them: the same instructions may be twice as wide."""
    family, model = _told("cpu family"), _told("model")
    return f"family {family}, model {model}" if family and model else ""


def instructions() -> list[str]:
    """The vector instructions that matter here, each once; none where the system does not tell."""
    flags = (_told("flags") or _told("Features")).split()
    return list(dict.fromkeys(name for flag, name in _INSTRUCTIONS.items() if flag in flags))


def _told(key: str) -> str:
    lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines() if _CPUINFO.exists() else []
    values = (line.split(":", 1)[1].strip() for line in lines if line.split(":")[0].strip() == key)
    return next(values, "")
