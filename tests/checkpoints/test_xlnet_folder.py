"""XLNet folders that cannot be taken are refused by the name of the setting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.folder import read_folder
from heedful.errors import HeedfulError
from heedful.models.xlnet import XlnetConfig
from heedful.models.xlnet_lm import XlnetForPretraining
from heedful.text.tokenizer import Tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = XlnetForPretraining(XlnetConfig(vocab_size=200, d_model=8, n_layer=1, n_head=2, d_inner=8))
    save_model(model, tmp_path / "m", None)
    return tmp_path / "m"


@pytest.mark.parametrize(
    ("key", "value"),
    [("attn_type", "uni"), ("bi_data", True), ("clamp_len", 400), ("same_length", True), ("ff_activation", "relu")],
)
def test_a_setting_that_is_not_supported_is_named(folder: Path, key: str, value: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, key: value}))
    with pytest.raises(HeedfulError, match=rf"{key}(.|\n)*config\.json"):
        read_folder(folder)


def test_a_tokenizer_that_frames_texts_as_bert_does_is_refused(folder: Path, tiny_tokenizer: Tokenizer) -> None:
    tiny_tokenizer.save(folder)
    with pytest.raises(HeedfulError, match=r"does not put \[SEP\] and \[CLS\] after texts"):
        read_folder(folder)
