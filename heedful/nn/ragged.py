"""Between flat rows and a padded block, for attention where neighbours have unlike lengths.

lengths 3 1     flat  a b c d     block  a b c     cells  0 1 2 3
                                         d . .
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """How runs of flat rows lie in a block: each in a line of its own, and the shorter ones leave cells on the right.

    Made once a batch, it serves all layers.
    """

    count: int  # B lines
    longest: int
    cells: Tensor | None  # (N,) the cell of each flat row, line after line; None where the runs fill all cells

    def pad(self, flat: Tensor) -> Tensor:
        """(N, …) -> (B, longest, …), zeros in the cells that are left over."""
        rows = flat if self.cells is None else _Spread.apply(flat, self.cells, self.count * self.longest)  # type: ignore[no-untyped-call]
        return rows.reshape(self.count, self.longest, *flat.shape[1:])

    def unpad(self, block: Tensor) -> Tensor:
        """(B, longest, …) -> (N, …), the rows that `pad` put there."""
        rows = block.flatten(0, 1)
        return rows if self.cells is None else _Gather.apply(rows, self.cells)  # type: ignore[no-untyped-call]


def layout_of(lengths: Sequence[int], device: torch.device) -> Layout:
    """The layout of B runs of so many rows."""
    count, longest = len(lengths), max(lengths, default=0)
    if min(lengths, default=0) == longest:
        return Layout(count, longest, None)
    size = torch.tensor(lengths)
    shift = torch.arange(count) * longest - (size.cumsum(0) - size)
    cells = torch.arange(sum(lengths)) + shift.repeat_interleave(size)
    return Layout(count, longest, cells.to(device))


def pad(flat: Tensor, lengths: Sequence[int]) -> Tensor:
    """Runs of flat rows as a block: (N, …) -> (B, longest, …), zeros on the right."""
    return layout_of(lengths, flat.device).pad(flat)


def unpad(block: Tensor, lengths: Sequence[int]) -> Tensor:
    """The runs of a block as flat rows: (B, longest, …) -> (N, …)."""
    return layout_of(lengths, block.device).unpad(block)


# torch's own gradient of indexing adds up row after row, because indices might repeat. Cells do not: what one of these
# two does forward the other does backward, in one copy.


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, flat: Tensor, cells: Tensor, count: int) -> Tensor:
        ctx.save_for_backward(cells)
        return _spread(flat, cells, count)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (cells,) = ctx.saved_tensors
        return gradient.index_select(0, cells), None, None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, cells: Tensor) -> Tensor:
        ctx.save_for_backward(cells)
        ctx.count = len(rows)
        return rows.index_select(0, cells)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (cells,) = ctx.saved_tensors
        return _spread(gradient, cells, ctx.count), None


def _spread(flat: Tensor, cells: Tensor, count: int) -> Tensor:
    rows = flat.new_zeros(count, *flat.shape[1:])
    rows[cells] = flat
    return rows
