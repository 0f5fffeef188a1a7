"""A pretrained model for a vocabulary to which words were added.

    folder = read_folder("model")
    wider = Tokenizer.load("wider")                # by `heedful tokenizer extend model …`
    model = load_grown(folder, wider, seed=0)      # shaped as grown_config(folder, wider) says

The new words start as what the model read in their place until now: the mean of their pieces, in the embedding matrix
and in the bias over the vocabulary. Since the matrix is tied, the logit of a new word is the mean of its pieces' too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from heedful.checkpoints.encoder_folder import load_for_pretraining
from heedful.checkpoints.families import family_named
from heedful.checkpoints.folder import ModelFolder, check_vocabulary
from heedful.models.encoder import EncoderConfig, encoder_of
from heedful.text.domain_words import spellings
from heedful.text.tokenizer import Tokenizer


def grown_config(folder: ModelFolder, tokenizer: Tokenizer) -> EncoderConfig:
    """The folder's config with a row for every piece of `tokenizer`; rows beyond its pieces are used up first."""
    config = folder.model_config
    if folder.tokenizer is None:  # then nobody knows how the new pieces were spelled
        check_vocabulary(tokenizer, config.vocab_size, folder.weights)
    return replace(config, vocab_size=max(config.vocab_size, tokenizer.vocab_size))


def load_grown(folder: ModelFolder, tokenizer: Tokenizer, seed: int) -> nn.Module:
    """The model of a folder, with its heads, for a tokenizer that has the folder's pieces and maybe more at the end.

    Heads that the folder lacks start afresh from `seed`.
    """
    model = load_for_pretraining(folder, seed)
    if folder.tokenizer is not None:
        grow(model, folder.tokenizer.vocab_size, spellings(tokenizer, folder.tokenizer))
    return model


def grow(model: nn.Module, first: int, spelled: Sequence[Sequence[int]]) -> None:
    """Give the pieces `first`, `first` + 1, … the means of the rows they were spelled with; other rows stay."""
    if not spelled:
        return
    encoder = encoder_of(model)
    for name in family_named(encoder.config.model_type).per_piece:
        module, _, leaf = name.rpartition(".")
        owner, rows = model.get_submodule(module), model.get_parameter(name).detach()
        setattr(owner, leaf, nn.Parameter(_with_means(rows, first, spelled)))
        if isinstance(owner, nn.Embedding):
            owner.num_embeddings = len(owner.weight)
    encoder.config = replace(encoder.config, vocab_size=len(encoder.token_matrix))


def _with_means(rows: Tensor, first: int, spelled: Sequence[Sequence[int]]) -> Tensor:
    """(V, …) -> (the larger of V and first + K, …) for K spellings."""
    means = torch.stack([rows[list(ids)].mean(0) for ids in spelled])
    return torch.cat([rows[:first], means, rows[first + len(spelled) :]])
