"""Mixed precision: matmuls in bfloat16, half the bits, about twice as fast where there are instructions for it.

Products are rounded to 8 significant bits of 24, and so is what is computed from them before the next sum with float32:
GELU, softmax, dropout. Weights, their gradients, Adam's moments, residual sums and losses stay in float32, and
evaluation is in float32 altogether.

`auto` is a question and not a precision: a run stores the answer, so that it stays the same run on another machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from heedful.training.contract import Objective, update_of
from heedful.training.processor import bfloat16_of, bfloat16_speed, speed_told
from heedful.training.training_config import Precision

AskedPrecision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True)
class Resolved:
    """The precision of a run and why it is that one; as a text it is the sentence for the log."""

    precision: Precision
    reason: str

    def __str__(self) -> str:
        return f"{self.precision}: {self.reason}"


def in_precision(objective: Objective, precision: Precision) -> Objective:
    """The same objective in mixed precision if asked; its losses must be added up in float32 by itself."""
    if precision == "float32" or update_of(objective) is not None:  # what moves the weights itself rounds nothing
        return objective

    def rounded(model: nn.Module, micro_batch: Any) -> Mapping[str, Tensor]:
        device = next(model.parameters()).device.type
        with torch.autocast(device, torch.bfloat16):
            return objective(model, micro_batch)

    return rounded


def resolved_precision(asked: AskedPrecision, device: str, stored: Precision | None = None) -> Resolved:
    """What `asked` means on a device: for `auto` its instructions decide, never a measurement.

    `stored` is the precision of a run that is resumed, which `auto` leaves as it is.
    """
    if asked != "auto":
        return Resolved(asked, "as asked for")
    if stored is not None:
        return Resolved(stored, "as the run was started")
    found = bfloat16_of(device)
    return Resolved("bfloat16" if found.there else "float32", found.reason)


def slow_bfloat16_warning(device: str) -> str | None:
    """What to tell a user who asks for bfloat16 on a device without such instructions, with the measured factor."""
    found = bfloat16_of(device)
    if found.there:
        return None
    advice = "precision float32 or auto is faster"
    if torch.device(device).type != "cpu":
        return f"bfloat16 may be slow: {found.reason}; {advice}"
    speed = bfloat16_speed()
    return None if speed > 1 else f"{speed_told(speed)}: {found.reason}; {advice}"


def resume_remark(precision: Precision, before: str, now: str) -> str | None:
    """Why a run that goes on here cannot stay bit-identical; None if it can.

    `before` and `now` are `arithmetic_of` the devices of the checkpoint and of this process; a checkpoint of an earlier
    version does not tell, and has "".
    """
    if before in ("", now):
        return None
    emulated = precision == "bfloat16" and "bfloat16" in before and "bfloat16" not in now
    why = "has no bfloat16 instructions and emulates them" if emulated else "rounds its sums in another order"
    return f"the checkpoint is from {before}, and {now} {why}: the run goes on in {precision}, but not bit for bit"
