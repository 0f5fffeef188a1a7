"""Tiny BERT folders as `transformers` writes them."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
import transformers

TINY = dict(  # noqa: C408
    vocab_size=40,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=20,
)
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", *(f"##{c}" for c in "abcdefgh")]


def save_foreign(name: str, folder: Path, half: bool = False, **options: object) -> Path:
    """Save a random model of the transformers class `name`, with a vocabulary of 21 pieces."""
    torch.manual_seed(0)
    model = getattr(transformers, name)(transformers.BertConfig(**TINY))
    for parameter in model.parameters():  # a fresh BERT has biases of zero, which would hide mistakes
        torch.nn.init.normal_(parameter, std=0.3)
    (model.half() if half else model).save_pretrained(folder, **options)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in VOCABULARY), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def _originals(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def original(name: str) -> Path:
        if name not in made:
            made[name] = save_foreign(name, tmp_path_factory.mktemp("foreign") / name)
        return made[name]

    return original


@pytest.fixture
def foreign(_originals: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A folder of a transformers class, in a copy that the test may damage."""
    return lambda name: Path(shutil.copytree(_originals(name), tmp_path / name))


@pytest.fixture(scope="session")
def save() -> Callable[..., Path]:
    """Save a model with options of `save_pretrained`."""
    return save_foreign


@pytest.fixture(scope="session")
def bundles() -> ModuleType:
    """The writer of TensorFlow checkpoints beside this file."""
    spec = importlib.util.spec_from_file_location("bundle_writer", Path(__file__).with_name("bundle_writer.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
