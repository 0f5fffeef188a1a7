"""Packed products against plain ones, for any number of rows."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from heedful.nn.int8 import Int8Linear
from heedful.nn.packed_int8 import int8_levels
from heedful.nn.packed_linear import PackedLinear, can_pack, packed, plus, rows_computed

pytestmark = pytest.mark.skipif(not can_pack(), reason="this torch has no packed products")


def test_few_numbers_of_rows_are_computed_and_few_rows_in_vain() -> None:
    sizes = {rows: rows_computed(rows) for rows in range(1, 4097)}
    assert [sizes[rows] for rows in (1, 16, 17, 24, 100, 257, 512, 513, 1025, 4096)] == [
        *(1, 16, 24, 24, 104, 272, 512, 544, 1088, 4096),
    ]
    assert all(0 <= size - rows <= max(7, rows / 16) for rows, size in sizes.items())
    assert len({size for rows, size in sizes.items() if rows <= 1024}) == 78


@pytest.mark.processor
@pytest.mark.parametrize("rows", [1, 3, 16, 17, 128, 129, 1025])
@pytest.mark.parametrize("gelu", [False, True])
def test_rows_that_are_added_change_nothing(rows: int, gelu: bool) -> None:
    torch.manual_seed(0)
    linear, x = nn.Linear(24, 40), torch.randn(rows, 24)
    product = linear(x).detach()
    expected = nn.functional.gelu(product) if gelu else product
    packed = PackedLinear(linear, gelu)
    torch.testing.assert_close(packed(x), expected, atol=1e-5, rtol=1e-5)
    room = torch.cat([x, torch.full((64, 24), torch.nan)])  # what lies behind x in memory is nobody's
    torch.testing.assert_close(packed(room[:rows]), expected, atol=1e-5, rtol=1e-5)
    assert packed(x).shape == (rows, 40) and packed(packed(x)[:, :24]).shape == (rows, 40)
    assert room[rows:].isnan().all()


@pytest.mark.processor
@pytest.mark.parametrize("rows", [1, 5, 16, 17, 129])
def test_a_product_is_added_in_one_go(rows: int) -> None:
    torch.manual_seed(0)
    linear, x, other = nn.Linear(24, 40), torch.randn(rows, 24), torch.randn(rows, 40)
    for layer in (linear, Int8Linear(linear, int8_levels())):
        expected = (layer(x) + other).detach()
        torch.testing.assert_close(plus(packed(layer))(x, other), expected, atol=1e-5, rtol=1e-5)
