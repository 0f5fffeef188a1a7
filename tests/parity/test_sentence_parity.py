"""sentence-transformers folders of every family: the same vectors, with Dense and Normalize and prompts by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import heedful
from heedful.text.tokenizer import Tokenizer

library = pytest.importorskip("sentence_transformers", reason="needs the extra bench")

SHAPE = {"vocab_size": 130, "max_position_embeddings": 66}
BERT_LIKE = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
FAMILIES = {
    "Bert": BERT_LIKE,
    "Roberta": BERT_LIKE | {"type_vocab_size": 1},
    "XLMRoberta": BERT_LIKE | {"type_vocab_size": 1},
    "DistilBert": {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40},
    "Albert": BERT_LIKE | {"embedding_size": 12},
    "Electra": BERT_LIKE | {"embedding_size": 12},
    "Ernie": BERT_LIKE,
    "MPNet": BERT_LIKE,
    "ModernBert": BERT_LIKE | {"local_attention": 10, "pad_token_id": 0},
}
TEXTS = ["the cat sees", "a", "a dog, unaffordable zebra and the love of the cat"]
PROMPTS = {"query": "the love ", "passage": "a cat "}


@pytest.fixture(params=FAMILIES)
def encoder(request: pytest.FixtureRequest, tiny_tokenizer: Tokenizer, tmp_path: Path) -> Path:
    """A folder of random weights, large enough for directions to differ, and of our tokenizer."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{request.param}Config")(**SHAPE, **FAMILIES[request.param])
    model = getattr(transformers, f"{request.param}Model")(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(tmp_path / "encoder")
    tiny_tokenizer.save(tmp_path / "encoder")
    return tmp_path / "encoder"


def test_the_vectors_are_those_of_sentence_transformers(encoder: Path, tmp_path: Path) -> None:
    from sentence_transformers import models

    transformer = models.Transformer(str(encoder), max_seq_length=50)
    for pooling in ("cls", "mean", "max", "weightedmean"):
        further = (models.Dense(24, 7), models.Normalize())
        modules = [transformer, models.Pooling(24, pooling), *further]
        theirs = library.SentenceTransformer(modules=modules, device="cpu", prompts=PROMPTS)
        theirs.save(str(tmp_path / pooling))
        ours = heedful.load(tmp_path / pooling, "cpu")
        for prompt in (None, *PROMPTS):
            wanted, found = theirs.encode(TEXTS, prompt_name=prompt), ours.embed(TEXTS, normalize=True, prompt=prompt)
            assert np.ptp(wanted, axis=0).max() > 1e-3  # the texts are told apart
            np.testing.assert_allclose(found, wanted, atol=1e-5)
