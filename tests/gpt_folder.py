"""A byte-level tokenizer as GPT-2 has it, and small random GPTs; nothing is downloaded."""

from __future__ import annotations

from typing import Any

import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, processors

from heedful.models.gpt import GptConfig, GptForPretraining
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_folder import END_OF_TEXT

MERGES = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("a", "t"), ("Ġ", "c"), ("Ġc", "at"), ("o", "n"), ("i", "n")]


def byte_level_tokenizer() -> Tokenizer:
    """A small one: all bytes, a few merges, and the end of a text."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*letters, *("".join(merge) for merge in MERGES), END_OF_TEXT]
    pieces += [f"<unused{i}>" for i in range(320 - len(pieces))]
    library = tokenizers.Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, MERGES))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.post_processor = processors.ByteLevel(trim_offsets=False)
    library.add_special_tokens([END_OF_TEXT])
    return Tokenizer(library, {"bos": END_OF_TEXT, "eos": END_OF_TEXT, "unk": END_OF_TEXT}, summary="last")


def random_gpt(vocab_size: int, seed: int = 0, **shape: Any) -> GptForPretraining:
    """Random weights, biases and norms too: zeros and ones would hide mistakes."""
    model = GptForPretraining(GptConfig(vocab_size=vocab_size, **shape))
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if name.endswith("norm.weight") else 0.0, 0.2, generator=rng)
    return model
