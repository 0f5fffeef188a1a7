"""A pretrained BERT for a vocabulary to which words were added.

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

from heedful.checkpoints.bert_folder import load_bert_for_pretraining
from heedful.checkpoints.folder import ModelFolder, check_vocabulary
from heedful.models.bert import BertConfig, BertForPretraining
from heedful.text.domain_words import spellings
from heedful.text.tokenizer import Tokenizer


def grown_config(folder: ModelFolder, tokenizer: Tokenizer) -> BertConfig:
    """The folder's config with a row for every piece of `tokenizer`; rows beyond its pieces are used up first."""
    config = folder.model_config
    if folder.tokenizer is None:  # then nobody knows how the new pieces were spelled
        check_vocabulary(tokenizer, config.vocab_size, folder.weights)
    return replace(config, vocab_size=max(config.vocab_size, tokenizer.vocab_size))


def load_grown(folder: ModelFolder, tokenizer: Tokenizer, seed: int) -> BertForPretraining:
    """The model of a folder, with its heads, for a tokenizer that has the folder's pieces and maybe more at the end.

    Heads that the folder lacks start afresh from `seed`.
    """
    model = load_bert_for_pretraining(folder, seed)
    if folder.tokenizer is not None:
        grow(model, folder.tokenizer.vocab_size, spellings(tokenizer, folder.tokenizer))
    return model


def grow(model: BertForPretraining, first: int, spelled: Sequence[Sequence[int]]) -> None:
    """Give the pieces `first`, `first` + 1, … the means of the rows they were spelled with; other rows stay."""
    if not spelled:
        return
    token, encoder = model.encoder.embeddings.token, model.encoder
    token.weight = nn.Parameter(_with_means(token.weight.detach(), first, spelled))
    token.num_embeddings = len(token.weight)
    model.mlm.bias = nn.Parameter(_with_means(model.mlm.bias.detach(), first, spelled))
    encoder.config = replace(encoder.config, vocab_size=token.num_embeddings)


def _with_means(rows: Tensor, first: int, spelled: Sequence[Sequence[int]]) -> Tensor:
    """(V, …) -> (the larger of V and first + K, …) for K spellings."""
    means = torch.stack([rows[list(ids)].mean(0) for ids in spelled])
    return torch.cat([rows[:first], means, rows[first + len(spelled) :]])
