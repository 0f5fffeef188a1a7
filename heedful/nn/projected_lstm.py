"""An LSTM in both directions whose output is projected, and whose cell and output are clipped: ELMo's.

    i, f, o = σ(W [x, h] + b)      c' = clip(f · c + i · tanh(W_c [x, h] + b_c))      h' = clip(P (o · tanh(c')))

torch's own LSTM projects, but clips nothing. What depends on x alone is one product for all words; the loop over time
does the rest, for both directions and all sequences that are long enough at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from heedful.nn.recurrent import longest_first, packed_order, put_back, reordered


class LstmState(NamedTuple):
    """Where each of B sequences stands in both directions: output (B, 2, P) and cell (B, 2, D)."""

    output: Tensor
    cell: Tensor


class TwoWayLstm(nn.Module):
    """One layer, forwards and backwards, with weights of its own for each; the first of two is forwards."""

    def __init__(self, inputs: int, width: int, projected: int, clip: float) -> None:
        """`clip` bounds cells and outputs; 0 for no bound."""
        super().__init__()
        self.clip = clip
        self.input = nn.Parameter(torch.zeros(2, inputs, 4 * width))
        self.recurrent = nn.Parameter(torch.zeros(2, projected, 4 * width))
        self.bias = nn.Parameter(torch.zeros(2, 4 * width))
        self.projection = nn.Parameter(torch.zeros(2, width, projected))

    def forward(self, x: Tensor, lengths: Sequence[int], state: LstmState | None = None) -> tuple[Tensor, LstmState]:
        """Inputs of both directions over flat words, (2, W, inputs) -> (2, W, P), and the state after each sequence.

        Forwards it goes on from `state` at the first word of a sequence, backwards at the last.
        """
        order, sizes = packed_order(lengths)
        forwards = order.to(x.device)
        backwards = _mirrored(lengths)[order].to(x.device)
        gates = torch.baddbmm(self.bias[:, None], x, self.input)
        steps = torch.stack([reordered(gates[0], forwards), reordered(gates[1], backwards)])
        ranked = longest_first(lengths).to(x.device)
        outputs, last = self._over_time(steps, sizes.tolist(), self._begin(state, ranked, x))
        back = ranked.argsort()
        after = LstmState(*(part.transpose(0, 1)[back] for part in last))
        return torch.stack([put_back(outputs[0], forwards), put_back(outputs[1], backwards)]), after

    def _begin(self, state: LstmState | None, ranked: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """Output and cell before the first step, (2, B, …), the longest sequence first."""
        if state is None:
            width, projected = self.projection.shape[1:]
            return x.new_zeros(2, len(ranked), projected), x.new_zeros(2, len(ranked), width)
        return state.output[ranked].transpose(0, 1), state.cell[ranked].transpose(0, 1)

    def _over_time(
        self, steps: Tensor, sizes: list[int], begin: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h, c = begin
        outputs: list[Tensor] = []
        finished: list[tuple[Tensor, Tensor]] = []
        for gates in torch.split(steps, sizes, dim=1):
            going = gates.shape[1]
            if going < h.shape[1]:  # the shorter ones, which stand last, have ended
                finished.append((h[:, going:], c[:, going:]))
                h, c = h[:, :going], c[:, :going]
            i, f, o, new = torch.baddbmm(gates, h, self.recurrent).chunk(4, dim=-1)
            c = self._clipped(torch.addcmul(f.sigmoid() * c, i.sigmoid(), new.tanh()))
            h = self._clipped((o.sigmoid() * c.tanh()) @ self.projection)
            outputs.append(h)
        finished.append((h, c))
        ends = [torch.cat(parts, dim=1) for parts in zip(*reversed(finished), strict=True)]
        return torch.cat(outputs, dim=1) if outputs else steps[..., : h.shape[-1]], (ends[0], ends[1])

    def _clipped(self, x: Tensor) -> Tensor:
        return x.clamp(-self.clip, self.clip) if self.clip else x


def _mirrored(lengths: Sequence[int]) -> Tensor:
    """For each flat row the row at the same distance from the other end of its sequence."""
    size = torch.tensor(lengths, dtype=torch.long)
    ends = size.cumsum(0)
    bounds = (2 * ends - size - 1).repeat_interleave(size)
    return bounds - torch.arange(len(bounds))
