"""Weights under the model's own names: averaged exactly, and never those of another model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from heedful.checkpoints.own_weights import averaged, fill_tensors
from heedful.checkpoints.tensors import write_tensors
from heedful.errors import HeedfulError


def folder(path: Path, **tensors: torch.Tensor) -> Path:
    path.mkdir()
    write_tensors(path, tensors)
    return path


def test_the_average_is_the_mean_of_each_tensor(tmp_path: Path) -> None:
    rng = torch.Generator().manual_seed(0)
    weights = [torch.randn(3, 4, generator=rng) for _ in range(5)]
    folders = [folder(tmp_path / str(i), w=w, seen=torch.tensor(i)) for i, w in enumerate(weights)]
    found = averaged(folders)
    torch.testing.assert_close(found["w"], torch.stack(weights).double().mean(0).float(), rtol=0, atol=0)
    assert found["seen"].dtype == torch.int64
    assert int(found["seen"]) == 2
    assert torch.equal(averaged(folders[:1])["w"], weights[0])


def test_other_models_are_not_averaged(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", a=torch.zeros(2))
    with pytest.raises(HeedfulError, match=r"another model: a is \(3,\), not \(2,\)"):
        averaged([one, folder(tmp_path / "shape", a=torch.zeros(3))])
    with pytest.raises(HeedfulError, match="another model: b: the model has no such tensor"):
        averaged([one, folder(tmp_path / "more", a=torch.zeros(2), b=torch.zeros(2))])
    with pytest.raises(HeedfulError, match="another model: a: they lack it"):
        averaged([one, folder(tmp_path / "less", c=torch.zeros(2))])


def test_numbers_that_are_no_floats_do_not_fill_floats(tmp_path: Path) -> None:
    whole = folder(tmp_path / "whole", a=torch.zeros(2, dtype=torch.int8))
    with pytest.raises(HeedfulError, match="stored as I8"):
        fill_tensors({"a": torch.zeros(2)}, whole)
