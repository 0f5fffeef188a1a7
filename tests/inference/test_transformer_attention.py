"""The three attentions of a Transformer that several threads use."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

import heedful
from heedful.inference.teacher_forced import encode_sides
from heedful.inference.transformer_attention import transformer_maps


def test_what_another_thread_translates_meanwhile_is_not_in_the_maps(tiny_translators: dict[str, Path]) -> None:
    translator = heedful.load(tiny_translators["transformer"], engine="heedful")
    folder = translator.folder
    pairs = encode_sides(folder, [("the cat sees the dog", "love")])
    (alone,) = transformer_maps(folder, pairs)

    def meanwhile(module: torch.nn.Module, given: object) -> None:
        handle.remove()
        with ThreadPoolExecutor(1) as other:
            assert len(other.submit(translator.translate, ["a dog", "love"]).result()) == 2

    handle = next(iter(folder.model.decoder)).register_forward_pre_hook(meanwhile)
    (beside,) = transformer_maps(folder, pairs)
    assert alone.encoder.shape == beside.encoder.shape and alone.written == beside.written
    for name in ("encoder", "decoder", "cross"):
        np.testing.assert_allclose(getattr(beside, name), getattr(alone, name), atol=1e-6)
