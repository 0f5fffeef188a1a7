"""A file damaged outside of its numbers is refused, or the same weights are loaded; nothing crashes or is mixed up."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from heedful.checkpoints.encoder_folder import load_for_pretraining
from heedful.checkpoints.folder import read_folder
from heedful.errors import HeedfulError


@pytest.fixture(scope="module")
def sound(save: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("BertForPreTraining", tmp_path_factory.mktemp("sound") / "model")


def refused_or_same(folder: Path, whole: dict[str, torch.Tensor]) -> bool:
    try:
        state = load_for_pretraining(read_folder(folder), seed=0).state_dict()
    except HeedfulError as error:
        assert error.where and error.remedy
        return True
    assert all(torch.equal(tensor, whole[name]) for name, tensor in state.items())
    return False


def test_a_truncated_file_is_always_refused(sound: Path, tmp_path: Path) -> None:
    whole = load_for_pretraining(read_folder(sound), seed=0).state_dict()
    folder = Path(shutil.copytree(sound, tmp_path / "model"))
    content = (sound / "model.safetensors").read_bytes()
    rng = random.Random(0)
    for length in [0, 1, 7, 8, 9, len(content) - 1, *(rng.randrange(len(content)) for _ in range(100))]:
        (folder / "model.safetensors").write_bytes(content[:length])
        assert refused_or_same(folder, whole), length


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_flipped_byte_is_refused_or_harmless(sound: Path, tmp_path: Path, file: str) -> None:
    whole = load_for_pretraining(read_folder(sound), seed=0).state_dict()
    folder = Path(shutil.copytree(sound, tmp_path / "model"))
    content = (sound / file).read_bytes()
    header = 8 + int.from_bytes(content[:8], "little") if file == "model.safetensors" else len(content)
    rng = random.Random(1)
    refused = 0
    for _ in range(400):
        damaged = bytearray(content)
        damaged[rng.randrange(header)] = rng.randrange(256)
        (folder / file).write_bytes(damaged)
        refused += refused_or_same(folder, whole)
    assert refused > 100
