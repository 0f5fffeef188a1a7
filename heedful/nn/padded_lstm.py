"""LSTM layers over a padded block, (B, T, D), such that they can be written for ONNX.

While a model is written they are ONNX's operator `LSTM`, which is told where each sequence ends; at all other times
they are torch's own, over what is real.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.nn.recurrent import over_runs


def over_block(layer: nn.LSTM, x: Tensor, counts: Tensor) -> Tensor:
    """The outputs over the first `counts` (B,) rows of each sequence, one at least: (B, T, D) -> (B, T, its width).

    Backwards each is read from its own last row; all behind that are zero.
    """
    counts = counts.clamp(min=1)
    if torch.onnx.is_in_onnx_export():
        return _as_operators(layer, x, counts)
    real = torch.arange(x.shape[1], device=x.device) < counts[:, None]
    said = over_runs(layer, x[real], counts.tolist())
    return said.new_zeros(*real.shape, said.shape[-1]).masked_scatter(real[:, :, None], said)


def _as_operators(layer: nn.LSTM, x: Tensor, counts: Tensor) -> Tensor:
    sides, direction = (("", "_reverse"), "bidirectional") if layer.bidirectional else (("",), "forward")
    count, length = x.shape[:2]
    x, counts = x.transpose(0, 1), counts.int()
    for number in range(layer.num_layers):
        inputs, recurrent, *biases = (
            torch.stack([_as_onnx_has_it(layer.get_parameter(f"{kind}_l{number}{side}")) for side in sides])
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        said = torch.onnx.ops.symbolic(
            "LSTM",
            (x, inputs, recurrent, torch.cat(biases, dim=1), counts),
            {"hidden_size": layer.hidden_size, "direction": direction},
            dtype=x.dtype,
            shape=(length, len(sides), count, layer.hidden_size),
        )
        x = said.transpose(1, 2).flatten(2)
    return x.transpose(0, 1)


def _as_onnx_has_it(weights: Tensor) -> Tensor:
    """The gates input, forget, cell, output of torch in ONNX's order."""
    i, f, c, o = weights.chunk(4)
    return torch.cat([i, o, f, c])
