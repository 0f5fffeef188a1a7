"""Tensors in slices of their rows, read back whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from heedful.checkpoints.own_weights import fill_tensors
from heedful.checkpoints.slices import first_row
from heedful.checkpoints.tensors import open_tensors
from heedful.errors import HeedfulError

MATRIX = torch.arange(15.0).reshape(5, 3)
LISTED: dict[str, Any] = {
    "matrix": {"shape": [5, 3], "rows": [2, 2, 1, 0]},
    "bias": {"shape": [2], "rows": [1, 1, 0, 0]},
    "step": {"shape": [], "rows": None},
    "buffer": {"shape": [2, 2], "rows": None},
}


def write(folder: Path, listed: Any = LISTED, files: Any = 4) -> Path:
    """Four files, as four processes write them."""
    for number in range(4):
        rows = MATRIX[2 * number : 2 * number + 2]
        tensors = {"matrix": rows.clone(), "bias": torch.tensor([7.0, 8.0])[number : number + 1].clone()}
        whole = {"step": torch.tensor(3.0), "buffer": torch.ones(2, 2)} if number == 0 else {}
        save_file({**tensors, **whole}, folder / f"slices-{number + 1:05d}-of-00004.safetensors")
    (folder / "slices.json").write_text(json.dumps({"files": files, "tensors": listed}))
    return folder


def test_slices_are_read_as_whole_tensors(tmp_path: Path) -> None:
    wanted = {"matrix": torch.zeros(5, 3), "bias": torch.zeros(2), "step": torch.zeros(()), "buffer": torch.zeros(2, 2)}
    fill_tensors(wanted, write(tmp_path))
    assert torch.equal(wanted["matrix"], MATRIX)
    assert wanted["bias"].tolist() == [7, 8]
    assert wanted["step"].item() == 3
    assert wanted["buffer"].sum().item() == 4


@pytest.mark.parametrize(
    ("listed", "files", "said"),
    [
        ({**LISTED, "matrix": {"shape": [5, 3], "rows": [2, 2, 2, 0]}}, 4, "not the 5 rows"),
        ({**LISTED, "matrix": {"shape": [5, 3], "rows": [1, 3, 1, 0]}}, 4, "matrix: a file does not hold"),
        ({**LISTED, "other": {"shape": [5, 3], "rows": [2, 2, 1, 0]}}, 4, "other: a file does not hold"),
        ({"matrix": {"shape": [5, 3]}}, 4, "not a list of slices"),
        (LISTED, 10**12, "files"),
        ([], 4, "not a list of slices"),
    ],
)
def test_a_list_that_does_not_fit_the_files_is_refused(tmp_path: Path, listed: Any, files: Any, said: str) -> None:
    with pytest.raises(HeedfulError, match=said), open_tensors(write(tmp_path, listed, files)):
        pass


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (write(tmp_path) / "slices-00003-of-00004.safetensors").unlink()
    with pytest.raises(HeedfulError) as raised, open_tensors(tmp_path):
        pass
    assert "slices-00003-of-00004" in str(raised.value)


@pytest.mark.parametrize(("rows", "size"), [(10, 4), (3, 4), (1, 2), (8, 4), (0, 2), (5, 5)])
def test_rows_are_dealt_as_torch_does_it(rows: int, size: int) -> None:
    tensor = torch.arange(rows)
    parts = torch.chunk(tensor, size) if rows else ()
    for rank in range(size):
        own = tensor[first_row(tensor, rank, size) : first_row(tensor, rank + 1, size)]
        assert own.tolist() == (parts[rank].tolist() if rank < len(parts) else [])
