from __future__ import annotations

import math

import pytest
import torch

from heedful.nn.positions import sinusoids


def test_each_cell_is_the_formula() -> None:
    table = sinusoids(50, 6)
    for place in (0, 1, 7, 49):
        for pair in range(3):
            angle = place / 10000 ** (2 * pair / 6)
            assert table[place, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[place, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_a_step_of_k_places_is_one_linear_function_everywhere() -> None:
    table = sinusoids(64, 8).double()
    for k in (1, 5, 20):
        found = torch.linalg.lstsq(table[:-k], table[k:])
        assert torch.allclose(table[:-k] @ found.solution, table[k:], atol=1e-5)


def test_an_odd_width_ends_with_a_sine() -> None:
    assert sinusoids(4, 5).shape == (4, 5)
