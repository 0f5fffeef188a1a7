"""Products in 8-bit whole numbers: the formula against sums of integers, and oneDNN against the formula."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from heedful.nn import packed_int8
from heedful.nn.int8 import Int8Linear, int8_linear, rounded_tokens, rounded_weights
from heedful.nn.packed_int8 import (
    FEW_ROWS,
    LEVELS_WITHOUT_DOT,
    PackedInt8Linear,
    can_pack_int8,
    int8_instructions,
    int8_levels,
)
from heedful.nn.packed_linear import PackedLinear, packed

needs_product = pytest.mark.skipif(not can_pack_int8(), reason="needs oneDNN")
SHAPES = [(1, 1, 1), (3, 16, 5), (40, 384, 70), (7, 1600, 24), (5, 30, 8), (FEW_ROWS + 1, 40, 12)]


def drawn(tokens: int, inputs: int, outputs: int, bias: bool = True) -> tuple[Tensor, nn.Linear]:
    rng = torch.Generator().manual_seed(tokens)
    linear = nn.Linear(inputs, outputs, bias=bias)
    with torch.no_grad():
        for parameter in linear.parameters():
            parameter.normal_(0.0, 0.3, generator=rng)
    spread = torch.logspace(-3, 3, tokens)[:, None]  # tokens of very different size
    return torch.randn(tokens, inputs, generator=rng) * spread, linear


def written_out(x: Tensor, linear: nn.Linear, levels: int) -> Tensor:
    """The formula in 64-bit integers and floats, number by number."""
    weights = linear.weight.detach().double()
    scales = weights.abs().amax(1) / 127
    whole = (weights / scales[:, None]).round().long()
    result = torch.empty(len(x), len(weights), dtype=torch.float64)
    for row, token in enumerate(x.double()):
        least = token.min()
        scale = (token.max() - least) / levels + 1e-30
        numbers = ((token - least) / scale).round().long()
        assert int(numbers.min()) >= 0 and int(numbers.max()) <= levels
        result[row] = (whole @ numbers) * scales * scale + whole.sum(1) * scales * least
    return result + linear.bias.detach().double()


def close(found: Tensor, expected: Tensor, share: float = 1e-5) -> bool:
    """Each row by its own size."""
    return bool(((found.double() - expected.double()).abs().amax(1) <= share * expected.double().abs().amax(1)).all())


@pytest.mark.parametrize("levels", [255, 127])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_formula_is_a_sum_of_whole_numbers(shape: tuple[int, int, int], levels: int) -> None:
    x, linear = drawn(*shape)
    # A half may be rounded up here and down there, which moves a number by one.
    found, expected = (
        int8_linear(x, rounded_weights(linear.weight), linear.bias, levels),
        written_out(x, linear, levels),
    )
    assert close(found, expected, 0.02)
    assert float(((found.double() - expected).abs().median() / expected.abs().median()).detach()) < 1e-4


def test_sums_of_whole_numbers_are_exact() -> None:
    rng = torch.Generator().manual_seed(0)
    token = torch.randint(0, 256, (20, 1024), generator=rng).float()
    token[:, 0], token[:, 1] = 0.0, 255.0
    weight = rounded_weights(torch.randint(-127, 128, (30, 1024), generator=rng).float())
    whole = token.long() @ weight.numbers.long().T
    assert torch.equal(int8_linear(token, weight, None), whole.float() * weight.scales.T)


def test_rounding_what_was_rounded_changes_no_bit() -> None:
    matrix = torch.randn(200, 37, generator=torch.Generator().manual_seed(1)) * torch.logspace(-8, 8, 200)[:, None]
    once = rounded_weights(matrix)
    twice = rounded_weights(once.restored())
    assert torch.equal(once.numbers, twice.numbers)
    assert torch.equal(once.scales, twice.scales)
    assert torch.equal(once.numbers.double() * once.scales.double(), once.restored().double())  # every product is exact
    assert int(once.numbers.abs().amax()) == 127
    assert bool(((once.restored() - matrix).abs() <= 0.51 * once.scales).all())


@pytest.mark.parametrize("product", [lambda layer: layer, packed])
def test_rows_of_zeros_and_what_is_no_number(product: Callable[[nn.Module], nn.Module]) -> None:
    assert not rounded_weights(torch.zeros(2, 3)).restored().any()
    assert torch.equal(rounded_tokens(torch.full((2, 3), -0.7)).restored(), torch.full((2, 3), -0.7))
    _, linear = drawn(1, 4, 4)
    x = torch.tensor([[float("nan")] * 4, [0.0] * 4])
    found = product(Int8Linear(linear))(x)
    assert found[0].isnan().all()
    assert torch.allclose(found[1], linear.bias.detach())


@needs_product
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_fast_product_is_the_formula(shape: tuple[int, int, int], bias: bool) -> None:
    x, linear = drawn(*shape, bias=bias)
    layer = Int8Linear(linear, int8_levels())
    assert close(PackedInt8Linear(layer)(x), layer(x))


@needs_product
@pytest.mark.parametrize("shape", SHAPES)
def test_seven_bits_never_overflow(shape: tuple[int, int, int]) -> None:
    """The largest numbers nearly everywhere: what a processor without VNNI adds in 16 bits must still fit."""
    tokens, inputs, outputs = shape
    linear = nn.Linear(inputs, outputs)
    with torch.no_grad():
        linear.weight.fill_(-1.0)
        linear.weight[::2] = 1.0
    layer = Int8Linear(linear, LEVELS_WITHOUT_DOT)
    for sign in (1.0, -1.0):
        x = torch.full((tokens, inputs), sign)
        x[:, 0] = 0.0
        assert close(PackedInt8Linear(layer)(x), layer(x))


@needs_product
def test_a_token_does_not_feel_its_neighbours() -> None:
    x, linear = drawn(9, 64, 33)
    product = PackedInt8Linear(Int8Linear(linear, int8_levels()))
    together = product(x)
    assert all(torch.equal(product(x[i : i + 1])[0], together[i]) for i in range(9))
    assert torch.equal(product(x.view(3, 3, 64)), together.view(3, 3, 33))


@pytest.mark.parametrize("form", ["none", "tanh"])
def test_packing_keeps_the_precision_and_applies_gelu(form: str) -> None:
    x, linear = drawn(6, 24, 10)
    gelu = nn.GELU(approximate=form)
    assert torch.allclose(packed(linear, gelu=True, form=form)(x), gelu(linear(x)), atol=1e-5)
    rounded = Int8Linear(linear, int8_levels())
    assert torch.allclose(packed(rounded, gelu=True, form=form)(x), gelu(rounded(x)), rtol=1e-4, atol=1e-4)
    assert isinstance(packed(linear), PackedLinear)


def pretend(monkeypatch: pytest.MonkeyPatch, machine: str, **flags: bool) -> None:
    monkeypatch.setattr(packed_int8.platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, **flags})


@pytest.mark.parametrize("flag", ["avx512_vnni", "avx_vnni", "amx_int8"])
def test_a_processor_with_a_dot_product_rounds_to_eight_bits(monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    for name in packed_int8.CAPS:
        monkeypatch.delenv(name, raising=False)
    pretend(monkeypatch, "x86_64", **{flag: True})
    assert int8_instructions().there
    assert int8_levels() == 255
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "avx2")
    assert not int8_instructions().there
    assert "ONEDNN_MAX_CPU_ISA=AVX2" in int8_instructions().reason


def test_one_without_rounds_to_seven_and_another_kind_computes_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "x86_64")
    assert not int8_instructions().there
    assert int8_levels() == (127 if can_pack_int8() else 255)
    pretend(monkeypatch, "aarch64")
    assert not can_pack_int8()
    assert "aarch64" in int8_instructions().reason
    assert int8_levels() == 255
    x, linear = drawn(3, 8, 4)
    rounded = Int8Linear(linear)
    assert torch.equal(packed(rounded)(x), rounded(x))
