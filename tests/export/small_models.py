"""Small models with random weights for other engines, texts to ask them, and their answers in a form to compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.models.bert import Bert, BertConfig
from heedful.models.encoder import Encoder
from heedful.text.bert_pipeline import SPECIAL_TOKENS, wordpiece_tokenizer
from heedful.text.tokenizer import Tokenizer

TEXTS = ["a b c", "", "h", "g f e d c b a a b c", "中 a"]
CONFIG = BertConfig(
    14, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, max_position_embeddings=32
)


def words() -> Tokenizer:
    """Letters are words."""
    pieces = [*SPECIAL_TOKENS.values(), *"abcdefgh", "中"]
    return Tokenizer(wordpiece_tokenizer({piece: i for i, piece in enumerate(pieces)}, lowercase=True))


def encoder() -> Bert:
    """A BERT for such a tokenizer."""
    model = Bert(CONFIG)
    stirred(model)
    return model


def stirred(model: Encoder) -> Encoder:
    """The model with random weights, so large that attention differs from a mean."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def rounded(said: Any) -> Any:
    """The same with every number to three places."""
    if isinstance(said, dict):
        return {key: rounded(value) for key, value in said.items()}
    if isinstance(said, list | tuple):
        return [rounded(value) for value in said]
    return round(said, 3) if isinstance(said, float) else said


def as_its_readme_says(exported: Path, texts: list[Any], patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The outputs that the lines of an exported folder's README give, run in that folder on texts or lists of words."""
    readme = (exported / "README.md").read_text(encoding="utf-8")
    lines = [line[4:] for line in readme.splitlines() if line.startswith("    ")]
    program = "\n".join(lines)
    for example in ('["one text", "another"]', '[["one", "text"], ["another"]]'):
        program = program.replace(example, repr(texts))
    assert repr(texts) in program and "heedful" not in program and len(lines) <= 11
    found: dict[str, Any] = {}
    with patch.context() as here:
        here.chdir(exported)
        exec(program, found)
    return found
